package places

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhoCountsAsOneClient(t *testing.T) {
	for address, client := range map[string]string{
		"192.0.2.1:80":                   "192.0.2.1",
		"[::ffff:192.0.2.1]:80":          "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:80":      "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:1":       "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":              "fe80::/64",
		"@":                              "@",
		"a name that is no address:8080": "a name that is no address:8080",
	} {
		require.Equal(t, client, Client(address), address)
	}
}

func TestOneClientGetsAShareOfThePlaces(t *testing.T) {
	p := New(4)
	var free []func()
	for _, address := range []string{"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1"} {
		f, ok := p.Take(address)
		require.True(t, ok, address)
		free = append(free, f)
	}
	_, ok := p.Take("[2001:db8::4]:1")
	require.False(t, ok, "its share is three of four")
	_, ok = p.Take("192.0.2.1:1")
	require.True(t, ok)
	_, ok = p.Take("192.0.2.2:1")
	require.False(t, ok, "none is left")
	free[0]()
	_, ok = p.Take("192.0.2.2:1")
	require.True(t, ok)
}
