package segment

import (
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// AppendEach stages copies of the records in order, and returns how many: all, or those before the one that failed.
func (l *Log) AppendEach(rs []Record, now int64) (n int, err error) {
	for n < len(rs) {
		if n += l.appendPlain(rs[n:], now); n == len(rs) {
			break
		}
		if err := l.Append(&rs[n], now); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// appendPlain stages records as long as they have neither headers nor a timestamp and fit the active segment. It is Reserve and CopyTo with
// everything in registers: 9 ns a record of 64 bytes instead of 14, or 5 if their values lie beside each other.
func (l *Log) appendPlain(rs []Record, now int64) (n int) {
	if rs = rs[:min(uint64(len(rs)), l.until-l.next, uint64(l.top))]; len(rs) == 0 {
		return 0
	}
	since := l.since
	if now > l.newest {
		if uint64(now-l.baseTime) > maxSince {
			return 0
		}
		since = uint64(now-l.baseTime) << stampBits
	}
	top, pos, data, index := l.top, l.pos, l.data, l.index
	if k, values, each := beside(rs, top*EntryBytes-pos); k >= fewBeside {
		n = k
		if each >= 0 {
			l.active.mark(holdsRows)
			top, pos = enterRows(index, top, pos, k, each, since)
		} else {
			pos = enterEach(index[top-k:top], rs, pos, since|flagNilKey)
			top -= k
		}
		copy(data[l.pos:pos], values)
	}
	for ; n < len(rs); n++ {
		r := &rs[n]
		k, v := len(r.Key), len(r.Value)
		room := (top-1)*EntryBytes - pos
		if r.Timestamp != 0 || len(r.Headers.raw) > 0 || k > room || v > room-k {
			break
		}
		top--
		stamp := since
		if r.Key == nil {
			stamp |= flagNilKey
		}
		if r.Value == nil {
			stamp |= flagNilValue
		}
		end := pos + k + v
		e := &index[top]
		atomicx.Writes(unsafe.Pointer(e))
		e.span, e.stamp = uint64(end)<<32|uint64(k), stamp
		if atomicx.Exploring && end > pos {
			atomicx.Writes(unsafe.Pointer(&data[pos]))
		}
		if k > 0 {
			pos += copy(data[pos:pos+k], r.Key)
		}
		copy(data[pos:end], r.Value)
		pos = end
	}
	if n > 0 {
		l.newest, l.since = max(now, l.newest), since
	}
	l.top, l.pos = top, pos
	l.next += uint64(n)
	return n
}

const fewBeside = 4 // fewer values are copied one by one

// beside returns how many of the first records are values alone that lie one behind the other in the caller's memory, as they do if they were
// made in one buffer, and all of these: they will lie so in the segment as well, and can be copied together. They fit room, entries included.
// each is the size of one, or negative if they differ. It does not look much further than that, since what does not fit will be looked at
// again for the next segment.
func beside(rs []Record, room int) (n int, values []byte, each int) {
	if values = rs[0].Value; values == nil || atomicx.Exploring {
		return 0, nil, 0
	}
	end, most, same := 0, min(cap(values), room), true
	each = len(values)
	for i := range rs {
		r := &rs[i]
		v := r.Value
		// What begins there and lies within the capacity of the first is of the same memory.
		if r.Timestamp != 0 || len(r.Headers.raw) > 0 || r.Key != nil || len(v) > most-end || address(v) != address(values)+uintptr(end) {
			break
		}
		same = same && len(v) == each
		end += len(v)
		n++
	}
	for end > room-n*EntryBytes {
		n--
		end -= len(rs[n].Value)
	}
	if !same {
		each = -1
	}
	return n, values[:end], each
}

// address returns where b begins, to be compared only.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// enterEach writes as many index entries as there are, from the last one down, for values alone whose bytes begin at pos, and returns where
// they end.
func enterEach(index []entry, rs []Record, pos int, stamp uint64) (end int) {
	for i := range rs[:len(index)] {
		e := &index[len(index)-1-i]
		atomicx.Writes(unsafe.Pointer(e))
		pos += len(rs[i].Value)
		e.span, e.stamp = uint64(pos)<<32, stamp
	}
	return pos
}
