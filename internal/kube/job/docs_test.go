package job

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// namings match the ways in which the sources name a condition's type or reason.
var namings = []*regexp.Regexp{
	regexp.MustCompile(`metav1\.Condition(?:True|False|Unknown), "([A-Z]\w+)"`),
	regexp.MustCompile(`\b[rR]eason: +"([A-Z]\w+)"`),
	regexp.MustCompile(`(?:CredentialError|obstacle)\{"([A-Z]\w+)"`),
	regexp.MustCompile(`\breason, message = "([A-Z]\w+)"`),
	regexp.MustCompile(`\breturn "([A-Z]\w+)", (?:err\.|fmt\.Sprintf\("%v)`),
	regexp.MustCompile(`(?:[rR]eason|[sS]top)[A-Z]\w* += "([A-Z]\w+)"\n`),
	regexp.MustCompile(`\.Reason, run\.Message[^=\n]* = [^"\n]*"([A-Z]\w+)"`),
	regexp.MustCompile(`\bCondition[A-Z]\w+ += "(\w+)"`),
}

var kindNames = regexp.MustCompile(`kindNames = \[\.\.\.\]string\{([^}]*)\}`)

func TestEachConditionAndReasonIsInTheDocs(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/operate.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(doc), "## Conditions and what to do")
	require.True(t, found)
	table, _, _ := strings.Cut(rest, "\n## ")

	names := map[string]string{}
	for _, pattern := range []string{
		"*.go", "../../../api/v1alpha1/*.go", "../logspod/*.go", "../sending/*.go", "../../artifact/*.go", "../../crosscheck/*.go",
		"../../inputs/*.go", "../../output/fetch/*.go", "../../schedd/*.go", "../../schedd/krb/*.go", "../../schedd/token/*.go",
		"../../target/backend/*.go",
	} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, way := range namings {
				for _, m := range way.FindAllStringSubmatch(string(text), -1) {
					names[m[1]] = file
				}
			}
			for _, m := range kindNames.FindAllStringSubmatch(string(text), -1) {
				for _, quoted := range regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(m[1], -1) {
					names[quoted[1]] = file
				}
			}
		}
	}
	require.Greater(t, len(names), 40, "the ways to name a reason have changed")
	for name, file := range names {
		require.True(
			t,
			regexp.MustCompile(`\b`+name+`\b`).MatchString(table),
			"%s of %s is not in docs/operate.md",
			name,
			file,
		)
	}
}

func TestEachQueueIsInTheDocs(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/metrics.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^.*`htcd_queue_depth`.*$").FindString(string(doc))
	for queue := range newWorld(t).Waiting() {
		require.Contains(t, row, "`"+queue+"`")
	}
}
