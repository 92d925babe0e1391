package aggregate

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStandardInputIsHeldUntilItIsRead(t *testing.T) {
	i := newIntake()
	piece := bytes.Repeat([]byte("x"), mostHeld/4)
	for range 4 {
		_, err := i.Write(piece) // nobody reads
		require.NoError(t, err)
	}
	waited := make(chan error)
	go func() {
		_, err := i.Write([]byte("end"))
		i.end()
		waited <- err
	}()
	got, err := io.ReadAll(i)
	require.NoError(t, err)
	require.NoError(t, <-waited, "there was room again")
	require.Equal(t, append(bytes.Repeat(piece, 4), "end"...), got)
	_, err = i.Write([]byte("more"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestAMessageLongerThanWhatIsHeldIsTaken(t *testing.T) {
	i := newIntake()
	_, err := i.Write(make([]byte, longestMessage))
	require.NoError(t, err)
}

func TestNobodyWaitsForACommandThatHasEnded(t *testing.T) {
	i := newIntake()
	_, err := i.Write(make([]byte, mostHeld))
	require.NoError(t, err)
	waited := make(chan error)
	go func() {
		_, err := i.Write([]byte("more"))
		waited <- err
	}()
	i.abandon()
	require.ErrorIs(t, <-waited, io.ErrClosedPipe)
	_, err = i.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}
