package group

import "fmt"

// textOf returns the text of v, or name with the number if v has none.
func textOf[T ~uint8](v T, texts []string, name string) string {
	if int(v) < len(texts) && texts[v] != "" {
		return texts[v]
	}
	return fmt.Sprintf("%s(%d)", name, uint8(v))
}
