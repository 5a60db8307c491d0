package report_test

import (
	"os"
	"testing"
)

func TestDump(t *testing.T) {
	os.MkdirAll("/tmp/leat/pure/html", 0o755)
	o := result(2, 1.3, 30, true)
	o["engine"] = "chan"
	o["notes"] = []string{"the cores moved during the run (near->far): compare these figures with nothing"}
	bad := result(4, 1, 30, true)
	bad["lost"] = 3
	bad["rate"] = 0
	bad["lanes"] = []object{{"consumer": "reader 0", "partition": 1, "first_fault": "message 7 of producer 2 is missing"}}
	os.WriteFile("/tmp/leat/pure/html/one.html", []byte(write(t, read(t, "unicast.json", result(1, 1, 30, true)))), 0o644)
	os.WriteFile("/tmp/leat/pure/html/three.html", []byte(write(t, read(t, "before", result(1, 1, 30, true)), read(t, "after-the-change", o), read(t, "old", result(3, 6, 20, false)))), 0o644)
	os.WriteFile("/tmp/leat/pure/html/bad.html", []byte(write(t, read(t, "run", bad))), 0o644)
}
