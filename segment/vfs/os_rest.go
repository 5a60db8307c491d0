//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package vfs

import "os"

// isFull knows no error of the system here: a full disk is an error like others.
func isFull(error) bool { return false }

// syncDir does nothing: these systems have no way to sync a directory, or need none.
func syncDir(string) error { return nil }

// lockFile does nothing: on these systems it is the user's part to open a directory once.
func lockFile(*os.File) error { return nil }
