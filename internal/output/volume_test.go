package output

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAFileSystemThatDoesNotBoundFilesHasRoomForThem(t *testing.T) {
	for name, c := range map[string]struct {
		stat       unix.Statfs_t
		free, size Room
	}{
		"ext4": {
			unix.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 100, Bfree: 60, Bavail: 50, Files: 64, Ffree: 40},
			Room{50 * 4096, 40}, Room{100 * 4096, 64},
		},
		"btrfs": {
			unix.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 100, Bavail: 50},
			Room{50 * 4096, uncounted}, Room{100 * 4096, uncounted},
		},
		"CephFS, whose files are the objects of its pools": {
			unix.Statfs_t{
				Bsize: 4 << 20, Frsize: 4 << 20, Blocks: 100, Bavail: 50, Files: 123_456, Ffree: math.MaxUint64,
			},
			Room{200 << 20, uncounted}, Room{400 << 20, uncounted},
		},
		"as many as there are numbers": {
			unix.Statfs_t{
				Bsize: 512, Frsize: 512, Blocks: 100, Bavail: 50, Files: math.MaxUint64, Ffree: math.MaxUint64,
			},
			Room{50 * 512, uncounted}, Room{100 * 512, uncounted},
		},
		"FUSE, with large reads": {
			unix.Statfs_t{Bsize: 128 << 10, Frsize: 4096, Blocks: 100, Bavail: 50, Files: 9, Ffree: 8},
			Room{50 * 4096, 8}, Room{100 * 4096, 9},
		},
	} {
		free, size := roomOf(c.stat)
		require.Equal(t, c.free, free, name)
		require.Equal(t, c.size, size, name)
	}
}
