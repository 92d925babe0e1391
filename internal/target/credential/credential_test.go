package credential

import (
	"encoding/base64"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/krb"
	"htc.cern.ch/htcd/internal/schedd/token"
)

func secret(pairs ...string) map[string][]byte {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return data
}

func TestWhatASecretHasToHold(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string][]byte
		is   string // empty: refused
		says string
	}{
		"username and password":      {secret("username", "robot\n", "password", "hush"), "account robot", ""},
		"username and keytab":        {secret("username", "robot", "keytab", "\x05\x02"), "account robot", ""},
		"a token":                    {secret("token", "hush"), "a token", ""},
		"a token and empty others":   {secret("token", "hush", "password", ""), "a token", ""},
		"an empty token":             {secret("token", ""), "a token", ""},
		"nothing":                    {nil, "", Keys},
		"something else":             {secret("tokens", "hush"), "", Keys},
		"no password, no keytab":     {secret("username", "robot"), "", Keys},
		"no username":                {secret("password", "hush"), "", Keys},
		"a token and a password":     {secret("token", "hush", "password", "hush"), "", "token beside"},
		"a token and a username":     {secret("token", "hush", "username", "robot"), "", "token beside"},
		"an empty token and another": {secret("token", "", "username", "robot", "keytab", "hush"), "", "token beside"},
	} {
		t.Run(name, func(t *testing.T) {
			cred, err := Read(c.data)
			if c.is != "" {
				require.NoError(t, err)
				require.Equal(t, c.is, cred.String())
				return
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "InvalidCredential", e.Reason)
			require.Contains(t, e.Message, c.says)
			require.NotContains(t, e.Message, "hush")
		})
	}
}

func TestAProofIsByTicketOrByToken(t *testing.T) {
	dir := t.TempDir()
	k := &Keeper{
		krb.New(krb.Options{BinDir: "/nowhere", Realms: []string{"R"}, Dir: dir}),
		token.New(token.Options{Dir: dir}),
	}
	prove := func(pairs ...string) (Proof, error) {
		c, err := Read(secret(pairs...))
		require.NoError(t, err)
		return k.Proof(t.Context(), c)
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode(
		[]byte(`{"kid":"POOL"}`),
	) + "." + encode(
		[]byte(`{"exp":4000000000,"iss":"i","sub":"alice@lab.htcd"}`),
	) + "." + encode(
		[]byte("signed"),
	)
	got, err := prove("token", text)
	require.NoError(t, err)
	require.Equal(t, "token of alice@lab.htcd", got.By)
	require.Equal(t, time.Unix(4000000000, 0), got.Expires)
	require.FileExists(t, filepath.Join(got.Identity.Tokens, "token"))
	require.Empty(t, got.Identity.CCache)

	text = encode(
		[]byte(`{}`),
	) + "." + encode(
		[]byte(`{"exp":4000000000,"iss":"https://i","sub":"alice"}`),
	) + "." + encode(
		[]byte("signed"),
	)
	sci, err := prove("token", text)
	require.NoError(t, err)
	require.Equal(t, "token of alice by https://i", sci.By)
	require.FileExists(t, sci.Identity.SciToken)
	require.Empty(t, sci.Identity.Tokens)
	_, err = prove("token", "hush")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "InvalidCredential", e.Reason)
	require.NotContains(t, e.Message, "Kerberos")
	_, err = prove("username", "robot@R", "password", "hush")
	require.ErrorAs(t, err, &e)
	require.Equal(t, "Unknown", e.Reason)
	require.Contains(t, e.Message, "no Kerberos ticket: kinit")

	require.NoError(t, k.Close())
	require.NoFileExists(t, filepath.Join(got.Identity.Tokens, "token"))
}
