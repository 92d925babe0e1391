package schedd

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhoTheScheddTakesAnIdentityFor(t *testing.T) {
	for name, c := range map[string]struct{ script, account, words string }{
		"the name before the domain": {`[ "$*" = "-name schedd.test -pool pool.test -type SCHEDD -long WRITE" ] && printf '# WRITE command to local schedd is ALLOWED\nCommand = 60040\nMyRemoteUserName = "robot@pool.test"\nEncryption = "YES"\n'`, "robot", ""},
		"a name without one":         {`echo 'MyRemoteUserName = "robot"'`, "robot", ""},
		"a refusal":                  {`printf '#SECMAN:2010:Received "DENIED" from server\n# WRITE is FAILED\n'; exit 1`, "", `SECMAN:2010:Received "DENIED"`},
		"no answer":                  {`echo "ERROR: failed to make connection to <127.0.0.1:9618>" >&2; exit 1`, "", "failed to make connection"},
		"no name":                    {`echo 'Command = 60040'`, "", "expected MyRemoteUserName"},
		"no ad":                      {`echo 'WRITE command succeeded'`, "", "expected MyRemoteUserName"},
	} {
		t.Run(name, func(t *testing.T) {
			account, err := tools(
				t,
				long,
				map[string]string{"condor_ping": c.script},
			).Ping(t.Context(), Identity{}, Writing)
			require.Equal(t, c.account, account)
			if c.words != "" {
				require.ErrorContains(t, err, c.words)
				return
			}
			require.NoError(t, err)
		})
	}
}
