package schedd

import (
	"bytes"
	"context"
	"strings"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// Tools lists HTCondor's commands that this package runs.
var Tools = []string{
	"condor_submit",
	"condor_q",
	"condor_history",
	"condor_rm",
	"condor_hold",
	"condor_release",
	"condor_qedit",
	"condor_transfer_data",
	"condor_tail",
	"condor_ssh_to_job",
	"condor_config_val",
	"condor_ping",
	"condor_status",
}

// Version returns the version that HTCondor's tools report, such as 23.9.6. Not all of them can be asked, but they come
// in one package.
func (c *Client) Version(ctx context.Context) (string, error) {
	var out bytes.Buffer
	err := c.run(
		ctx,
		command{name: "condor_q", args: []string{"-version"}, timeout: c.o.Timeout, read: tool.Output(&out)},
	)
	if err != nil {
		return "", err
	}
	words := strings.Fields(out.String()) // $CondorVersion: 23.9.6 2026-07-12 ...
	if len(words) < 2 || words[0] != "$CondorVersion:" {
		return "", &condor.Error{
			Command: "condor_q",
			Stderr:  "expected $CondorVersion, found " + condor.Clip(out.String()),
		}
	}
	return words[1], nil
}
