package submit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/programtest"
)

// Events of the job 12 of the node N1, as HTCondor writes them.
const (
	submitted = "000 (%c.000.000) 2026-11-27 00:41:43 Job submitted from host: <127.0.0.1:9618?addrs=127.0.0.1-9618>\n" +
		"    DAG Node: %n\n...\n"
	executing = "001 (%c.000.000) 2026-11-27 00:41:48 Job executing on host: <127.0.0.1:9618>\n\tSlotName: slot1@host\n...\n"
	ended     = "005 (%c.000.000) 2026-11-27 00:41:50 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n"
	noted     = "000 (%c.000.000) NOW Job submitted from host: <127.0.0.1:0>\n    DAG Node: %n\n...\n"
)

func events(cluster, node string, all ...string) string {
	return strings.NewReplacer("%c", cluster, "%n", node).Replace(strings.Join(all, ""))
}

func TestDAGMansLogIsGivenTheSubmissionsThatItLacks(t *testing.T) {
	first := events("011", "N0", submitted, executing, ended)
	for name, c := range map[string]struct{ log, queue, history, added string }{
		"nothing is lacking": {log: first + events("012", "N1", submitted), queue: "12 N1\n"},
		"the schedd was killed before it wrote it": {
			log: first, queue: "12 N1\n9000 N2\n", added: events("012", "N1", noted) + events("9000", "N2", noted),
		},
		"the job runs": {
			log: first + events("012", "N1", executing), queue: "12 N1\n", added: events("012", "N1", noted, executing),
		},
		"the job has ended and left the queue": {
			log: events("012", "N1", executing) + first + events("012", "N1", ended), history: "12 N1\n",
			added: events("012", "N1", noted, executing, ended),
		},
		"the job is unknown everywhere": {log: events("012", "N1", executing)},
		"this was killed between the two": {
			log: events("012", "N1", executing, ended, noted, executing), queue: "12 N1\n", added: events("012", "N1", ended),
		},
		"another job of the node is known": {log: first, queue: "11 N0\n12 N0\n"},
		"two jobs of a node are not":       {queue: "13 N1\n12 N1\n", added: events("012", "N1", noted)},
		"a newer HTCondor wrote the log": {
			log:   strings.ReplaceAll(first, "DAG Node: N0", `[ DAGNodeName = "N0"; JobBatchName = "a" ]`),
			queue: "12 N0\n13 N10\n", added: events("013", "N10", noted),
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for tool, text := range map[string]string{
				"condor_q":          "cat queue",
				"condor_history":    `[ "$_CONDOR_HISTORY" = /spool/history ] && cat history`,
				"condor_config_val": "echo /spool/history",
				"date":              "echo NOW",
			} {
				programtest.Write(t, filepath.Join(dir, tool), "#!/bin/sh\n"+text+"\n")
			}
			log := filepath.Join(dir, "flow.dag.nodes.log")
			for file, text := range map[string]string{log: c.log, dir + "/queue": c.queue, dir + "/history": c.history} {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			}
			for range 2 { // the second time it lacks nothing
				cmd := exec.CommandContext(
					t.Context(),
					"sh",
					"-c",
					strings.Replace(starterBody, "\nmain \"$@\"\n", "\ncomplete_log\n", 1),
				)
				cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "CONDOR_ID=7.0"}
				said, err := cmd.CombinedOutput()
				require.NoError(t, err)
				require.Empty(t, string(said))
				now, err := os.ReadFile(log)
				require.NoError(t, err)
				require.Equal(t, c.log+c.added, string(now))
			}
		})
	}
}
