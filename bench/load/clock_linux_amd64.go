package load

import (
	"bytes"
	"os"
)

// counterTrusted reports whether the kernel keeps its own time by the time stamp counter, which it does only as long as the
// counter runs evenly and alike on all cores, and whether the processor can read it in order (RDTSCP).
func counterTrusted() bool {
	source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil || string(bytes.TrimSpace(source)) != "tsc" {
		return false
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && bytes.Contains(info, []byte(" rdtscp "))
}
