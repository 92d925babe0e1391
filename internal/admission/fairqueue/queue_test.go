package fairqueue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamespacesTakeTurns(t *testing.T) {
	for name, c := range map[string]struct{ pushed, popped []string }{
		"one namespace: first come, first served":     {[]string{"a/1", "a/2", "a/3"}, []string{"a/1", "a/2", "a/3"}},
		"a single one waits for one turn":             {[]string{"a/1", "a/2", "a/3", "b/1"}, []string{"a/1", "b/1", "a/2", "a/3"}},
		"three namespaces go round":                   {[]string{"a/1", "a/2", "b/1", "b/2", "c/1"}, []string{"a/1", "b/1", "c/1", "a/2", "b/2"}},
		"a key without a namespace is one of its own": {[]string{"a/1", "a/2", "uid"}, []string{"a/1", "uid", "a/2"}},
	} {
		t.Run(name, func(t *testing.T) {
			q := &rotation{waiting: map[string][]string{}}
			for _, key := range c.pushed {
				q.Push(key)
			}
			var popped []string
			for q.Len() > 0 {
				popped = append(popped, q.Pop())
			}
			require.Equal(t, c.popped, popped)
			require.Empty(t, q.waiting, "served namespaces leave nothing behind")
		})
	}
}

func TestAnAddedKeyTakesTheLastTurn(t *testing.T) {
	q := &rotation{waiting: map[string][]string{}}
	q.Push("a/1")
	q.Push("b/1")
	require.Equal(t, "a/1", q.Pop())
	q.Push("a/2")
	require.Equal(t, "b/1", q.Pop())
	require.Equal(t, "a/2", q.Pop())
}
