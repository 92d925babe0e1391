package items

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATextIsFilledForEachJob(t *testing.T) {
	const item = "TOWN=arno\nEMPTY=\nEQ=a=b\n"
	for text, want := range map[string]string{
		"a.csv": "a.csv", "{{item.TOWN}}.csv": "arno.csv", "{{proc}}-{{item.EQ}}": "7-a=b", "x{{item.EMPTY}}y": "xy",
		"{{cluster}}": "{{cluster}}", "{{ proc }}": "{{ proc }}", "{{item.}}": "{{item.}}", "{{{proc}}}": "{7}",
	} {
		got, err := Fill(text, 7, item)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, got != text, Varies(text), text)
	}
	_, err := Fill("a{{item.town}}", 7, item)
	require.EqualError(t, err, "found {{item.town}}, and the item of job 7 has no variable town")
}
