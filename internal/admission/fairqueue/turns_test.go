package fairqueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// turnsOf returns Turns of so many places, its clock, and the keys that Go was called for.
func turnsOf(places, perHost int) (t *Turns, clock *time.Time, called *[]string) {
	clock, called = new(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)), new([]string)
	return &Turns{
		Places: places, PerHost: perHost,
		Now: func() time.Time { return *clock },
		Go:  func(key string) { *called = append(*called, key) },
	}, clock, called
}

func TestANamespaceHasOnePlace(t *testing.T) {
	turns, _, called := turnsOf(8, 8)
	require.Equal(t, Room, turns.Take("a/1", []string{"x"}))
	require.Equal(t, Room, turns.Take("a/1", []string{"x"}), "it has it already")
	require.Equal(t, OfNamespace, turns.Take("a/2", []string{"y"}))
	require.Equal(t, Room, turns.Take("b/1", []string{"x"}))
	turns.Leave("a/1")
	require.Equal(t, []string{"a/2"}, *called)
	require.Equal(t, Room, turns.Take("a/2", []string{"y"}))
}

func TestAHostHasItsOwnPlacesAndNoOthers(t *testing.T) {
	turns, _, _ := turnsOf(4, 2)
	require.Equal(t, Room, turns.Take("a/1", []string{"slow"}))
	require.Equal(t, Room, turns.Take("b/1", []string{"slow"}))
	for i := range 100 {
		require.Equal(t, OfHost, turns.Take(fmt.Sprintf("c%d/1", i), []string{"slow"}))
	}
	require.Equal(t, OfHost, turns.Take("d/1", []string{"fast", "slow"}))
	require.Equal(t, Room, turns.Take("e/1", []string{"fast"}), "those that wait for the slow one are passed over")
	require.Equal(t, Room, turns.Take("f/1", []string{"fast"}))
	require.Equal(t, OfAll, turns.Take("g/1", []string{"other"}))
}

func TestANamespaceThatHadATurnWaitsForTheOthers(t *testing.T) {
	turns, _, called := turnsOf(1, 1)
	require.Equal(t, Room, turns.Take("a/1", nil))
	require.Equal(t, OfNamespace, turns.Take("a/2", nil))
	require.Equal(t, OfNamespace, turns.Take("a/3", nil))
	require.Equal(t, OfAll, turns.Take("b/1", nil))
	require.Equal(t, OfAll, turns.Take("c/1", nil))
	var order []string
	for _, key := range []string{"a/1", "b/1", "c/1", "a/2"} {
		turns.Leave(key)
		order, *called = append(order, *called...), nil
		require.Equal(t, Room, turns.Take(order[len(order)-1], nil))
	}
	require.Equal(t, []string{"b/1", "c/1", "a/2", "a/3"}, order)
	require.NotEqual(t, Room, turns.Take("d/1", nil))
	turns.Leave("d/1")
	turns.Leave("a/3")
	require.Empty(t, turns.line)
	require.Empty(t, turns.last, "nothing is remembered when nobody waits")
}

func TestAPlaceIsNotTakenByWhomeverAsksFirst(t *testing.T) {
	turns, clock, called := turnsOf(1, 1)
	require.Equal(t, Room, turns.Take("a/1", nil))
	require.Equal(t, OfAll, turns.Take("b/1", nil))
	turns.Leave("a/1")
	require.Equal(t, []string{"b/1"}, *called)
	require.NotEqual(t, Room, turns.Take("a/2", nil), "it is kept for b")
	*clock = clock.Add(keptFor + time.Second)
	require.Equal(t, Room, turns.Take("a/2", nil), "b was not heard of")
	require.NotEqual(t, Room, turns.Take("b/1", nil))
}

func TestAKeyThatIsNotHeardOfWaitsNoLonger(t *testing.T) {
	turns, clock, called := turnsOf(1, 1)
	require.Equal(t, Room, turns.Take("a/1", nil))
	require.Equal(t, OfAll, turns.Take("gone/1", nil))
	*clock = clock.Add(2 * time.Minute)
	require.Equal(t, OfAll, turns.Take("b/1", nil))
	*clock = clock.Add(2 * time.Minute)
	turns.Leave("a/1")
	require.Equal(t, []string{"b/1"}, *called)
}

func TestHundredsThatWaitOfOneNamespaceDelayAnotherByOneTurn(t *testing.T) {
	turns, _, called := turnsOf(2, 2)
	for i := range 500 {
		turns.Take(fmt.Sprintf("a/%d", i), []string{"x"})
		turns.Take(fmt.Sprintf("b/%d", i), []string{"x"})
	}
	require.Equal(t, OfHost, turns.Take("c/1", []string{"x"}))
	turns.Leave("a/0")
	require.Equal(t, []string{"c/1"}, *called)
}
