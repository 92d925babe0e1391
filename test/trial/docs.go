package trial

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Block is a block of commands (```sh) in a document. The line above it may say where it is not run.
type Block struct {
	Text   string
	NotRun string // <!-- not run: why -->
	OnNode bool   // <!-- on a node -->: run only where htcd is a pod
}

// Blocks returns the blocks of a document.
func Blocks(t *testing.T, file string) (blocks []Block) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		if lines[i] != "```sh\n" {
			continue
		}
		var b Block
		mark := strings.TrimSpace(lines[max(0, i-1)])
		if why, ok := strings.CutPrefix(mark, "<!-- not run: "); ok {
			b.NotRun = strings.TrimSuffix(why, " -->")
			require.NotEmpty(t, b.NotRun, "%s: say why a block is not run", file)
		} else if mark != "" {
			require.Equal(t, "<!-- on a node -->", mark, "%s: what is above a block", file)
			b.OnNode = true
		}
		for i++; lines[i] != "```\n"; i++ {
			b.Text += lines[i]
		}
		blocks = append(blocks, b)
	}
	return blocks
}
