package convert

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManyFilesOfOneNameGetTheirKeysAtOnce(t *testing.T) {
	const most = 50_000
	b := newBundler(Env{})
	for range most {
		require.NoError(t, b.add(&place{}, "in.dat", []byte("1")))
	}
	last := &place{}
	require.NoError(t, b.add(last, "in.dat", nil))
	require.Equal(t, fmt.Sprintf("in.dat.%d", most+1), last.key)
	require.Equal(t, map[string]int{"in.dat": most}, last.pack.again, "one try for each after the first")
}
