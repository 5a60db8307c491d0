package storage

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// A file of the engine's is
//
//	[magic 8] [version 4] [CRC32-C of all that follows 4] [length 8] [JSON]
//
// with little-endian numbers. It is never edited but replaced as a whole: see vfs.Replace.
const (
	fileMagic   = "leatmeta"
	fileVersion = 1
	fileHead    = 24
)

// FileLimit is how large such a file may be.
const FileLimit = 1 << 30

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// WriteFile makes v the content of a file, so that after a crash it is that or what was there before.
func WriteFile(fsys vfs.FS, name string, v any) error {
	body, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	b := append(make([]byte, 0, fileHead+len(body)), fileMagic...)
	b = binary.LittleEndian.AppendUint32(b, fileVersion)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(body)))
	b = append(b, body...)
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[16:], castagnoli))
	return vfs.Replace(fsys, name, b)
}

// ReadFile sets v to the content of a file. The error is ErrCorrupt, frame.ErrVersion, or one of the file system.
func ReadFile(fsys vfs.FS, name string, v any) error {
	b, err := vfs.ReadFile(fsys, name, FileLimit)
	if err != nil {
		return err
	}
	bad := errors.New("it was not written by this program, or only in part")
	if len(b) >= fileHead && string(b[:8]) == fileMagic {
		if version := binary.LittleEndian.Uint32(b[8:]); version != fileVersion {
			return fmt.Errorf("%s: version %d: %w", name, version, frame.ErrVersion)
		}
		if binary.LittleEndian.Uint64(b[16:]) == uint64(len(b)-fileHead) &&
			crc32.Checksum(b[16:], castagnoli) == binary.LittleEndian.Uint32(b[12:]) {
			if bad = json.Unmarshal(b[fileHead:], v); bad == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: %s: %w", ErrCorrupt, name, bad)
}
