package daemon

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyPagesThatAreThoseOfTheProgramsFileAreGivenBack(t *testing.T) {
	require.Equal(t, []mapping{{0x400000, 0x1a84000}}, unwritten(strings.NewReader(
		`00400000-01a84000 r-xp 00000000 fe:00 11600355                           /usr/bin/htcd
Rss:               18892 kB
Anonymous:             0 kB
01a84000-03021000 r--p 01684000 fe:00 11600355                           /usr/bin/htcd
Anonymous:             4 kB
03021000-030f5000 rw-p 02c21000 fe:00 11600355                           /usr/bin/htcd
Anonymous:             0 kB
030f5000-03115000 r--p 00000000 00:00 0 
Anonymous:             0 kB
03115000-03116000 r--p 00000000 fe:00 11600356                           /usr/bin/htcd.so
Anonymous:             0 kB
`), "/usr/bin/htcd"))
}

func TestHtcdGoesOnAfterItsPagesWereGivenBack(t *testing.T) {
	giveBackPages()
}
