package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEverySettingIsDocumentedUnderAHeading(t *testing.T) {
	text := settingsText()
	for _, g := range settingGroups {
		require.True(t, strings.Contains(text, "## "+g.Title+"\n"), "no flag is called %s", g.First)
	}
	require.Contains(t, text, "| `--callback-url=URL` | `HTCD_CALLBACK_URL` |  | URL at which")
	file, err := os.ReadFile("../../docs/settings.md")
	require.NoError(t, err)
	require.Equal(t, text, string(file), "run make generate")
	require.Equal(t, strings.Count(text, "\n| `--"), strings.Count(text, "HTCD_"), "one variable each")
}
