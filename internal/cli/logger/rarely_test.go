package logger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatClientGoRepeatsIsOneLineAMinute(t *testing.T) {
	var out strings.Builder
	clock := time.Now()
	r := &rarely{to: &out, now: func() time.Time { return clock }}
	say := func(words string) {
		line := fmt.Sprintf("{%q:%q,\"time\":%q}\n", "error", words, clock.Format(time.RFC3339))
		n, err := r.Write([]byte(line))
		require.NoError(t, err)
		require.Len(t, line, n)
	}
	for range 59 {
		say("forbidden")
		clock = clock.Add(time.Second)
	}
	require.Equal(t, 1, strings.Count(out.String(), "forbidden"))
	say("refused")
	require.Equal(t, 1, strings.Count(out.String(), "refused"))
	clock = clock.Add(time.Second)
	say("forbidden")
	require.Equal(t, 2, strings.Count(out.String(), "forbidden"), "a minute later")

	for i := range 3 * mostLines {
		say(fmt.Sprint(i))
	}
	require.LessOrEqual(t, len(r.said), mostLines)
}
