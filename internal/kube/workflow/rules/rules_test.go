package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConditions(t *testing.T) {
	for text, values := range map[string]map[float64]bool{
		"value > 2.0":                           {2: false, 2.1: true, -3: false},
		" value>=2&&value<4 ":                   {1: false, 2: true, 4: false},
		"value < 1 || value > 2 && value != 3":  {0: true, 1: false, 3: false, 4: true},
		"":                                      {0: true, -1e9: true},
		"value == -1.5e2":                       {-150: true, 150: false},
		"value <= 0 || value == 7 || value > 9": {0: true, 7: true, 8: false, 10: true},
	} {
		c, err := Parse(text)
		require.NoError(t, err, text)
		for value, want := range values {
			require.Equal(t, want, c.Holds(value), "%s of %g", text, value)
		}
	}
	for _, text := range []string{"value", "value > x", "2 < value", "value > 1 && ", "value > 1 | value > 2", "value > 0x1", "value > 1e999", "value > NaN", "value > 1; value < 2"} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
}

func TestOccasions(t *testing.T) {
	type look struct {
		at    int // seconds
		holds bool
		acts  bool
		again int // 0: no time
	}
	for name, c := range map[string]struct {
		pace  Pace
		looks []look
	}{
		"each time that it becomes true":   {Pace{}, []look{{0, false, false, 0}, {1, true, true, 0}, {30, true, false, 0}, {31, false, false, 0}, {32, true, true, 0}}},
		"not twice within the least pause": {Pace{}, []look{{0, true, true, 0}, {1, false, false, 0}, {2, true, false, 10}, {5, true, false, 10}, {10, true, true, 0}, {11, true, false, 0}}},
		"too soon, and then no longer":     {Pace{}, []look{{0, true, true, 0}, {1, false, false, 0}, {2, true, false, 10}, {10, false, false, 0}, {11, true, true, 0}}},
		"while it stays true":              {Pace{Backoff: time.Minute}, []look{{0, true, true, 0}, {59, true, false, 60}, {60, true, true, 0}, {61, false, false, 0}, {62, true, false, 120}}},
		"so many times":                    {Pace{Times: 2, Backoff: time.Minute}, []look{{0, true, true, 0}, {60, true, true, 0}, {120, true, false, 0}, {121, false, false, 0}, {200, true, false, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Unix(1000, 0)
			var s State
			for _, l := range c.looks {
				next, acts, again := c.pace.Next(s, l.holds, begin.Add(time.Duration(l.at)*time.Second))
				require.Equal(t, l.acts, acts, "at %d", l.at)
				want := time.Time{}
				if l.again > 0 {
					want = begin.Add(time.Duration(l.again) * time.Second)
				}
				require.Equal(t, want, again, "at %d", l.at)
				s = next
			}
		})
	}
}
