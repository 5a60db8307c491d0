// Package powercut has the tests that take the power away below a real file system of this machine's kernel.
//
// There is nothing in it but tests, and it is a module of its own because they need FUSE. What they do:
//
//	engine with durable topics          publishes, flushes, trims, commits, makes and deletes topics, closes and opens again;
//	   |                                each thing that it is told is noted together with the length of the device's log then
//	ext4, or what else there is
//	   |
//	loop device
//	   |
//	one file on a FUSE file system      is kept in memory; every write and every flush of the device goes into a log, in order
//
// A power cut is a place in that log: all that was written before the last flush is there, and of what was written since then
// any sectors of 512 bytes. Such an image is mounted, an engine is opened on it, and has to have all that had been promised by then.
// Some images lose the power again while the engine recovers.
//
// The tests are skipped, with the reason, where nothing can be mounted. Flags:
//
//	go test . -images 500             so many power cuts for each file system; 200, or 30 with -short
//	go test . -seed 7                 decides what is published, and which cuts there are; printed by each run
//	go test . -keep DIR               write the image of each failure there, to look at it with mount and leatdump
//
// The process has its mounts to itself, so they go when it ends, and the loop devices with them. But the disk is in the process, too:
// if that is killed, or crashes, while a thread of it waits in the kernel for the disk, the thread waits for ever, and only
//
//	mount -t fusectl none /sys/fs/fuse/connections; echo 1 > /sys/fs/fuse/connections/N/abort
//
// lets it go. A test that fails or panics takes all away in order.
//
// What the kernel makes of the same seed is not the same each time: when it writes is for it to decide. So a failure comes with the
// image, and not only with the seed.
package powercut
