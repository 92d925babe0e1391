package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// dagStep says what it was told, but for the number of its try, which only HTCondor has there, and ends as it is told.
const dagStep = `#!/bin/sh
try=${HTC_RETRY:-$1}
shift
echo "$@"
echo "began $(date +%s)"
case $2 in
until) [ "$try" -ge "$3" ] && code=0 || code=1 ;;
end) code=$3 ;;
*) code=0 ;;
esac
echo "ended $(date +%s)"
exit $code
`

// A dagRun is a DAG of testdata/dags, by condor_submit_dag and by htcd submit.
type dagRun struct {
	name, dir, cluster string
	order              [][]string // pairs of nodes of which the first one ends before the other begins
	flow               *flow
}

func TestDAGsRunAsByCondorSubmitDAG(t *testing.T) {
	t.Parallel()
	c := commands{trial.New(t)}
	client, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	archives, err := filepath.Glob("testdata/dags/*.txtar")
	require.NoError(t, err)
	require.Len(t, archives, 12)
	var runs []dagRun
	for _, archive := range trial.Sample(4, archives...) {
		r := dagRun{name: strings.TrimSuffix(filepath.Base(archive), ".txtar")}
		r.dir = c.Lab.Path("dags", c.Namespace, r.name)
		r.flow = &flow{Bench: c.Bench, client: client, name: r.name}
		ar, err := txtar.ParseFile(archive)
		require.NoError(t, err)
		ours := t.TempDir()
		for _, f := range ar.Files {
			if f.Name == "order" {
				for l := range strings.Lines(string(f.Data)) {
					r.order = append(r.order, strings.Split(strings.TrimSpace(l), " < "))
				}
				continue
			}
			for _, dir := range []string{ours, r.dir} {
				text := string(f.Data)
				if dir == r.dir { // in place of get-output
					text = strings.ReplaceAll(
						text,
						"executable =",
						fmt.Sprintf("output = %s/out.$(JOB).$(Process)\nexecutable =", dir),
					)
				}
				to := filepath.Join(dir, f.Name)
				require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
				require.NoError(t, os.WriteFile(to, []byte(text), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(to), "step.sh"), []byte(dagStep), 0o755))
			}
		}
		_, err = c.Lab.RunAs(t.Context(), "root", "chown", "-R", "robot", r.dir)
		require.NoError(t, err)
		out, err := c.Lab.RunAs(
			t.Context(),
			"robot",
			"sh",
			"-c",
			"cd "+r.dir+" && condor_submit_dag -notification never "+
				"-insert_env '_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=FS;_CONDOR_DAGMAN_USER_LOG_SCAN_INTERVAL=1' flow.dag",
		)
		require.NoError(t, err, r.name)
		m := regexp.MustCompile(`submitted to cluster (\d+)`).FindStringSubmatch(out)
		require.NotNil(t, m, out)
		r.cluster = m[1]
		submit := exec.CommandContext(t.Context(), c.Lab.Bin("htcd"), "submit", "flow.dag", "--name", r.name, "--image",
			"centos", "--scripts-in-jobs", "-n", c.Namespace)
		submit.Dir = ours
		said, err := submit.CombinedOutput()
		require.NoError(t, err, "%s: %s", r.name, said)
		runs = append(runs, r)
	}
	for _, r := range runs {
		w := r.flow.ended()
		c.Eventually(func() bool { return len(c.Condor("condor_q", "ClusterId == "+r.cluster)) == 0 },
			func() string { return r.name + " is in the queue: " + r.cluster })
		to := filepath.Join(t.TempDir(), "out")
		c.Eventually(func() bool {
			_, err := c.Lab.Run(t.Context(), "htcd", "get-output", "wf/"+r.name, to, "-n", c.Namespace)
			return err == nil
		}, func() string { return r.name + " was not fetched" })
		said, began, ended := dagSaid(t, to, "stdout")
		wanted, _, _ := dagSaid(t, r.dir, "out.*.[0-9]")
		require.Equal(t, wanted, said, r.name)
		theirs, ours := "DAGManJobId == "+r.cluster, fmt.Sprintf("HTCNode =!= undefined && HTCWorkflowUID == %q", w.UID)
		c.Eventually(func() bool { return c.starts(theirs) == c.starts(ours) },
			func() string { return fmt.Sprintf("%s: %d starts, not %d", r.name, c.starts(ours), c.starts(theirs)) })
		for _, pair := range r.order {
			require.Contains(t, ended, pair[0], r.name)
			require.LessOrEqual(t, ended[pair[0]], began[pair[1]], "%s: %v", r.name, pair)
		}
	}
}

// dagSaid returns what the jobs said whose output lies below a directory, and when those of each node began and ended.
func dagSaid(t *testing.T, dir, pattern string) (said []string, began, ended map[string]int) {
	t.Helper()
	began, ended = map[string]int{}, map[string]int{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if is, _ := filepath.Match(pattern, filepath.Base(path)); err != nil || d.IsDir() || !is {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		node, _, _ := strings.Cut(lines[0], " ")
		said = append(said, lines[0])
		for _, l := range lines[1:] {
			what, at, _ := strings.Cut(l, " ")
			n, _ := strconv.Atoi(at)
			switch what {
			case "began":
				began[node] = n
			case "ended":
				ended[node] = max(ended[node], n)
			}
		}
		return nil
	}))
	slices.Sort(said)
	return said, began, ended
}

// starts counts how often the jobs of nodes were started; DAGMan has a job of its own for each try, and for a DAG in
// the DAG.
func (c commands) starts(constraint string) (n int) {
	for _, line := range c.Condor("condor_history", constraint, "JobUniverse", "NumJobStarts") {
		words := strings.Fields(line)
		if words[1] == "7" {
			n += c.starts("DAGManJobId == " + strings.TrimSuffix(words[0], ".0"))
			continue
		}
		starts, err := strconv.Atoi(words[2])
		require.NoError(c.T, err)
		n += starts
	}
	return n
}
