package jobcredentials

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhereJobsAskForTheirCredentials(t *testing.T) {
	for callback, want := range map[string]string{
		"https://htcd.example.org/cloudevents":        "https://htcd.example.org/credentials/u-1/3",
		"https://htcd.example.org:8443/x/cloudevents": "https://htcd.example.org:8443/x/credentials/u-1/3",
		"https://htcd.example.org":                    "https://htcd.example.org/credentials/u-1/3",
		"http://htcd.example.org/cloudevents":         "",
		"HTTPS://htcd.example.org/cloudevents":        "https://htcd.example.org/credentials/u-1/3",
		"":                                            "",
	} {
		require.Equal(t, want != "", Served(callback), callback)
		require.Equal(t, want, URL(callback, "u-1", 3), callback)
	}
}
