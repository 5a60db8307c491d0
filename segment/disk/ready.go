package disk

// ready makes what was found fit for writing: it removes what is left over, makes the end of the log safe, seals it, and begins
// a new file under the next epoch. If it fails in the middle the next attempt finds a log that means the same.
func (l *Log) ready(x *found) error {
	if err := l.clean(x); err != nil {
		return err
	}
	if n := len(x.files); n > 0 {
		last := x.files[n-1]
		if x.next {
			if err := l.finish(x.files[n-2], &x.full); err != nil {
				return err
			}
		}
		if x.next && l.cfg.broken.has(flawNextUnsafe) {
			last.sealed = true
		} else if err := l.finish(last, &x.tail); err != nil {
			return err
		}
		if x.next {
			if cut := x.rec.Cut; cut != nil && cut.File == last.path() {
				cut.File = last.name
			}
			if err := l.rename(last); err != nil {
				return err
			}
		}
		if last.empty() {
			x.files = x.files[:n-1] // the new file takes its name
		}
	}
	x.epoch++
	if l.cfg.broken.has(flawSameEpoch) && x.epoch > 1 {
		x.epoch--
	}
	base := x.state.Low
	if n := len(x.files); n > 0 {
		base = x.files[n-1].end
	} else if len(x.bases) > 0 && !x.rec.New {
		base = x.bases[len(x.bases)-1]
		if l.cfg.broken.has(flawForgetEnd) {
			base = l.cfg.First
		}
	}
	next, err := l.prepare(base, x.epoch, 0)
	if err != nil {
		return err
	}
	if err := l.enter(next); err != nil {
		_ = next.f.Close()
		return err
	}
	if x.rec.New {
		l.mu.Lock()
		l.epoch = x.epoch // for the state
		l.mu.Unlock()
		if err := l.writeState(base, base); err != nil {
			_ = next.f.Close()
			return err
		}
	}
	x.files = append(x.files, next)
	return nil
}

// clean removes files that were never finished, and those that a Trim has left, and makes safe which names there are: what is
// seen may be from before a sync of the directory that failed.
func (l *Log) clean(x *found) error {
	for _, name := range x.temps {
		if x.next && l.path(name) == x.files[len(x.files)-1].path() {
			continue
		}
		x.rec.Removed++
		if err := l.fs.Remove(l.path(name)); err != nil {
			return l.fail("remove", l.path(name), err)
		}
	}
	l.mu.Lock()
	l.low = max(l.low, x.state.Low) // before a reader finds that they are gone, whatever else fails: a Trim may have failed after its state
	l.mu.Unlock()
	for _, base := range x.bases[:x.drop] {
		name := l.path(segmentName(base))
		if err := l.fs.Remove(name); err != nil {
			return l.fail("remove", name, err)
		}
	}
	x.rec.Removed += x.drop
	return l.syncDir()
}

// finish makes the last file safe, as far as its frames are sound, and seals it if there are any.
func (l *Log) finish(f *file, s *scan) (err error) {
	if f.empty() {
		return nil
	}
	if f.f, err = l.fs.Open(f.path()); err != nil {
		return l.fail("open", f.name, err)
	}
	defer func() {
		if closeErr := f.f.Close(); err == nil && closeErr != nil {
			err = l.fail("close", f.name, closeErr)
		}
		f.f = nil
	}()
	if f.sealed {
		size, err := f.f.Size()
		if err != nil {
			return l.fail("read", f.name, err)
		}
		// The records were safe before the seal was written; of the seal itself that is not known.
		return l.rewrite(f, f.size, size)
	}
	if l.cfg.broken.has(flawNoRecoverySync) {
		return nil
	}
	// The tail goes first: whatever happens after this, no rest of a torn frame will be found behind what is written here.
	if err := l.truncate(f.f, f.name, f.size); err != nil {
		return err
	}
	from := f.index.at(s.proven).Pos
	if f.temp {
		from = 0 // nor has its head ever been safe
	}
	if err := l.rewrite(f, from, f.size); err != nil {
		return err
	}
	if _, err := l.writeSeal(f); err != nil {
		return err
	}
	f.sealed = true
	return nil
}

// rewrite writes what is in a part of a file once more, and syncs. After a sync that failed the bytes may be seen, since the
// system keeps them in memory, and yet not be on the disk, nor ever be written by another sync: unless they are written again.
func (l *Log) rewrite(f *file, from, to int64) error {
	c := chunks{f: f.f, size: to}
	for !l.cfg.broken.has(flawNoRewrite) && from < to {
		n := min(to-from, chunkBytes)
		b, err := c.get(from, int(n))
		if err != nil {
			return l.fail("read", f.name, err)
		}
		if _, err := f.f.WriteAt(b, from); err != nil {
			return l.fail("write", f.name, err)
		}
		from += n
	}
	if err := f.f.Sync(); err != nil {
		return l.fail("sync", f.name, err)
	}
	return nil
}
