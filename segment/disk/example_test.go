package disk_test

import (
	"fmt"
	"io"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

func Example() {
	c := disk.Config{FS: vfs.NewMem(), Topic: frame.ID{1}} // without FS: real files
	l, err := disk.Open("orders-0", c)
	if err != nil {
		fmt.Println(err)
		return
	}
	var b frame.Builder
	for range 2 {
		b.Reset(1 << 20)
		b.Add(&frame.Record{Key: []byte("k"), Value: []byte("first of a batch"), Appended: 1})
		b.Add(&frame.Record{Value: []byte("second"), Appended: 1})
		first, err := l.Write(&b) // one write for the batch
		fmt.Println("written at", first, err)
	}
	durable, err := l.Sync() // one sync for both
	fmt.Println("durable up to", durable, err)
	fmt.Println("closed:", l.Close())

	l, err = disk.Open("orders-0", c)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	r, err := l.NewReader(l.First())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	for {
		b, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		var rec frame.Record
		records := b.Records()
		for records.Next(&rec) {
			fmt.Printf("%d %s\n", rec.Offset, rec.Value)
		}
	}
	// Output:
	// written at 0 <nil>
	// written at 2 <nil>
	// durable up to 4 <nil>
	// closed: <nil>
	// 0 first of a batch
	// 1 second
	// 2 first of a batch
	// 3 second
}
