package daemon

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNameInTheLease(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"on a machine it is this process's":           {Options{}, fmt.Sprintf("%s_%d", host, os.Getpid())},
		"in a pod it is this process's of this pod's": {Options{PodUID: "5e0c"}, fmt.Sprintf("%s_5e0c_%d", host, os.Getpid())},
		"a given one overrides both":                  {Options{PodUID: "5e0c", Identity: "lab"}, "lab"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&daemon{o: c.o}).identity()
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}
