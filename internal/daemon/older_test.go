package daemon

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnOlderStateOfTheApiserverIsNoticed(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	tick := make(chan time.Time, 10)
	answers := []string{"5", "7", "", "no number", "7", "12", "9"}
	for range answers {
		tick <- time.Time{}
	}
	asked := 0
	version := func(context.Context) (string, error) {
		if asked++; answers[asked-1] == "" {
			return "", errors.New("it does not answer")
		}
		return answers[asked-1], nil
	}
	err := watchState(ctx, tick, version)
	require.ErrorIs(t, err, errOlderState)
	require.True(t, needsReexec(err), "nothing that it remembers holds")
	require.Len(t, answers, asked)
	stop()
	require.NoError(t, watchState(ctx, nil, version))
}
