package outage

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// broken makes condor_submit end after the schedd has refused an attribute and before anything is committed. The schedd
// then reports this to whoever commits next (seen with 23.9).
const broken = `executable = /bin/true
+MY.X = 1
+Y = $(item)
queue item from (
1
(((
)
`

func TestWhatAnotherClientLeavesBehindIsNobodyElsesRefusal(t *testing.T) {
	o := begin(t)
	file := o.Lab.Path("run", "broken.sub")
	require.NoError(t, os.WriteFile(file, []byte(broken), 0o644))
	for _, name := range []string{"one", "two", "three"} {
		_, err := o.Lab.Run(t.Context(), "condor_submit", "-spool", file)
		require.ErrorContains(t, err, "Parse error in expression")
		o.Create(name, "exit 0\n")
		o.succeeded(name)
	}
	o.gone()
}
