package procset

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASetIsReadAndWritten(t *testing.T) {
	for text, want := range map[string]string{
		"3,7-9": "3,7-9", "9,7,8,3": "3,7-9", " 0 , 1-1,2": "0-2", "1-5,2-3,5-6": "1-6", "0": "0", "0-9": "0-9", "3-5,0-1": "0-1,3-5",
	} {
		s, err := Parse(text, 10)
		require.NoError(t, err, text)
		require.Equal(t, want, s.String(), text)
		require.Equal(t, s, Of(s.Numbers()), text)
		for i, n := range s.Numbers() {
			at, ok := s.At(i)
			require.True(t, ok && at == n && s.Has(n), text)
		}
		require.Equal(t, s.Len(), len(s.Numbers()))
	}
	s := Of([]int{9, 3, 7, 8, 3})
	require.Equal(t, "3,7-9", s.String())
	for _, n := range []int{-1, 0, 2, 4, 6, 10} {
		require.False(t, s.Has(n), n)
	}
	for _, i := range []int{-1, 4, 1 << 40} {
		_, ok := s.At(i)
		require.False(t, ok, i)
	}
	require.Zero(t, Of(nil).Len())
	require.Empty(t, Set{}.String())
}

func TestWhatIsNoSetIsRefused(t *testing.T) {
	for text, words := range map[string]string{
		"": "such as 3,7-9", "a": "such as 3,7-9", "3,": "such as 3,7-9", "-3": "such as 3,7-9", "3-": "such as 3,7-9", "5-3": "such as 3,7-9", "3-4-5": "such as 3,7-9",
		"+3": "such as 3,7-9", "1.5": "such as 3,7-9", "99999999999": "such as 3,7-9", "10": "there is no job 10: they are numbered 0 to 9", "0-10": "there is no job 10",
	} {
		_, err := Parse(text, 10)
		require.ErrorContains(t, err, words, text)
	}
}

func TestTheNthNumberIsThatOfTheSet(t *testing.T) {
	for _, text := range []string{"", "0", "3", "0-4", "1,3,5", "2-3,7,9-12"} {
		s, err := Parse(text, 100)
		if text == "" {
			s, err = Set{}, nil
		}
		require.NoError(t, err)
		for i := -1; i < 12; i++ {
			want, there := s.At(i)
			got, ok := Nth(text, i)
			require.Equal(t, []any{want, there}, []any{got, ok}, "%q %d", text, i)
		}
	}
	_, ok := Nth("1,x", 1)
	require.False(t, ok)
}
