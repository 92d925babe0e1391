package output

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// volume is one of 1,000 blocks and files, of which some are free.
type volume struct {
	*Shares
	free, size Room
	clock      time.Time
}

func newVolume() *volume {
	v := &volume{size: Room{1000 * block, 1000}, clock: time.Now()}
	v.free = v.size
	v.Shares = &Shares{
		Volume:  func() (free, size Room, err error) { return v.free, v.size, nil },
		Reserve: func(Room) Room { return Room{100 * block, 100} },
		Now:     func() time.Time { return v.clock },
	}
	return v
}

// all books so much or nothing.
func all(want Room) func(Left) (Room, bool) {
	return func(l Left) (Room, bool) {
		if l.Holds(want) {
			return want, false
		}
		return Room{}, true
	}
}

func TestOneNamespaceTakesThreeQuartersAtMostOfWhatOthersLeave(t *testing.T) {
	for name, c := range map[string]struct {
		want   Room
		booked bool
	}{
		"three quarters of the bytes": {Room{675 * block, 1}, true},
		"more of the bytes":           {Room{676 * block, 1}, false},
		"three quarters of the files": {Room{block, 675}, true},
		"more of the files":           {Room{block, 676}, false},
	} {
		b, err := newVolume().Book("a", all(c.want))
		require.NoError(t, err, name)
		require.Equal(t, c.booked, b != nil, name)
	}
	v := newVolume()
	v.Alone = true
	b, err := v.Book("a", all(Room{900 * block, 900}))
	require.NoError(t, err)
	require.NotNil(t, b, "who is alone leaves nothing to others")
}

func TestHoweverManyHaveTheirSharesAnotherOneFindsRoom(t *testing.T) {
	v := newVolume()
	for _, namespace := range []string{"a", "b", "c"} {
		taken := 0
		for {
			b, err := v.Book(namespace, all(Room{block, 1}))
			require.NoError(t, err)
			if b == nil {
				break
			}
			taken++
		}
		require.Positive(t, taken)
	}
	b, err := v.Book("d", all(Room{block, 1}))
	require.NoError(t, err)
	require.NotNil(t, b)
}

func TestWhatIsBookedAndWrittenCountsOnce(t *testing.T) {
	v := newVolume()
	b, err := v.Book("a", all(Room{600 * block, 600}))
	require.NoError(t, err)
	dir := t.TempDir()
	b.In(dir, Room{})
	for i := range 599 { // and the directory
		require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte("x"), 0o600))
	}
	v.free = v.free.Minus(Room{599 * block, 600})
	other, err := v.Book("b", all(Room{200 * block, 200}))
	require.NoError(t, err)
	require.NotNil(t, other, "300 are free")
	other.Leave()
	b.Keep(Room{599 * block, 600})
	b.Leave()
	require.Empty(t, v.under)
}

func TestOthersBookWhileWhatANamespaceKeepsIsMeasured(t *testing.T) {
	v := newVolume()
	v.Kept = []string{t.TempDir()}
	measuring, end := make(chan bool), make(chan bool)
	v.Now = func() time.Time { measuring <- true; <-end; return v.clock }
	booked := make(chan *Booking, 2)
	book := func(namespace string, blocks int64) {
		b, err := v.Book(namespace, all(Room{blocks * block, 1}))
		require.NoError(t, err)
		booked <- b
	}
	v.free.Bytes -= 300 * block // of others
	go book("a", 400)
	<-measuring
	go book("b", 50)
	select {
	case b := <-booked:
		require.Equal(t, "b", b.namespace)
	case <-time.After(10 * time.Second):
		t.Error("b waits for a")
	}
	end <- true
	require.Equal(t, "a", (<-booked).namespace)
}

func TestWhatANamespaceKeepsCountsUntilItIsGone(t *testing.T) {
	v := newVolume()
	v.Kept = []string{t.TempDir(), t.TempDir()}
	dir := filepath.Join(v.Kept[1], "a", "flow")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	keep := func(name string, blocks int64) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		require.NoError(t, os.Truncate(filepath.Join(dir, name), blocks*block))
		v.free.Bytes -= blocks * block
	}
	keep("big", 600)
	require.NoError(t, os.Link(filepath.Join(dir, "big"), filepath.Join(dir, "again")))
	b, err := v.Book("a", all(Room{75 * block, 1}))
	require.NoError(t, err)
	require.NotNil(t, b, "that makes 675 of 900")
	keep("more", 75)
	b.Keep(Room{75 * block, 1})
	b.Leave()
	none, err := v.Book("a", all(Room{block, 1}))
	require.NoError(t, err)
	require.Nil(t, none)
	b, err = v.Book("b", all(Room{150 * block, 1}))
	require.NoError(t, err)
	require.NotNil(t, b)
	b.Leave()

	require.NoError(t, os.RemoveAll(dir))
	v.free = v.size
	v.clock = v.clock.Add(measuredFor)
	b, err = v.Book("a", all(Room{600 * block, 1}))
	require.NoError(t, err)
	require.NotNil(t, b)
}
