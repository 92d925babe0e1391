package schedd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The goldens of dagfile say which graph a DAG file makes. HTCondor 25 only says whether it takes the file.
func TestEveryDAGFileMakesTheGraphThatDAGManMakes(t *testing.T) {
	t.Parallel()
	version, err := exec.CommandContext(t.Context(), "condor_version").Output()
	require.NoError(t, err)
	dumps := strings.Contains(string(version), " 23.")
	archives, err := filepath.Glob("../../internal/convert/dagfile/testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			t.Parallel()
			dir, want := t.TempDir(), ""
			for _, d := range []string{"d/e", "e", "out"} {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
			}
			for _, f := range goldens(t, strings.TrimPrefix(archive, "../../internal/")) {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644))
			}
			args := []string{"-p", "0", "-f", "-l", ".", "-Lockfile", "x.lock", "-AutoRescue", "0", "-DryRun", "-Dag",
				"x.dag"}
			if dumps {
				args = append(args, "-DoRescueFrom", "0", "-DumpRescue")
			}
			cmd := exec.CommandContext(t.Context(), "condor_dagman", append(args, "-CsdVersion",
				strings.SplitN(string(version), "\n", 2)[0])...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "_CONDOR_DAGMAN_LOG=x.out", "_CONDOR_DAGMAN_USE_STRICT=0",
				"_CONDOR_DAGMAN_USE_JOIN_NODES=False",
				"_CONDOR_DAGMAN_USER_LOG_SCAN_INTERVAL=1")
			out, err := cmd.CombinedOutput()
			if strings.HasPrefix(want, "! ") {
				require.Error(t, err)
				return
			}
			require.NoError(t, err, "%s", out)
			if dumps {
				require.Equal(t, graphOf(want), rescued(t, dir))
			}
		})
	}
}

// graphOf picks the names of nodes and the edges from a golden.
func graphOf(want string) []string {
	var graph []string
	for _, m := range regexp.MustCompile(`(?m)^\S+:\d+ JOB (\S+) |^(\S+ -> \S+)$`).FindAllStringSubmatch(want, -1) {
		graph = append(graph, m[1]+m[2])
	}
	sort.Strings(graph)
	return graph
}

// rescued picks the same from the rescue DAG that DAGMan wrote.
func rescued(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "x.dag.rescue001"))
	require.NoError(t, err)
	var graph []string
	for l := range strings.Lines(string(text)) {
		switch words := strings.Fields(l); {
		case len(words) < 2:
		case words[0] == "JOB":
			graph = append(graph, words[1])
		case words[0] == "PARENT":
			for _, child := range words[3:] {
				graph = append(graph, words[1]+" -> "+child)
			}
		}
	}
	sort.Strings(graph)
	return graph
}
