package rules

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConditions(t *testing.T) {
	for text, values := range map[string]map[float64]bool{
		"value > 2.0":                           {2: false, 2.1: true, -3: false},
		" value>=2&&value<4 ":                   {1: false, 2: true, 4: false},
		"value < 1 || value > 2 && value != 3":  {0: true, 1: false, 3: false, 4: true},
		"value == -1.5e2":                       {-150: true, 150: false},
		"value <= 0 || value == 7 || value > 9": {0: true, 7: true, 8: false, 10: true},
	} {
		c, err := Parse(text)
		require.NoError(t, err, text)
		for value, want := range values {
			require.Equal(t, want, c.Holds(value), "%s of %g", text, value)
		}
	}
	for _, text := range []string{"", "value", "value > x", "2 < value", "value > 1 && ", "value > 1 | value > 2", "value > 0x1", "value > 1e999", "value > NaN", "value > 1; value < 2"} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
}
