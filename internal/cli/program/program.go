// Package program has the commands of htcd that programs run, rather than people: jobs report their ends and ask for
// credentials, a Pod prints output, condor_ssh_to_job starts a relay in the place of ssh, and Argo a plugin beside its
// agent.
package program

import (
	"github.com/spf13/cobra"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/notify"
)

// Commands returns all of them.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		argoPluginCommand(), portsCommand(), sendCommand(), pullCommand(), printCommand(), relayCommand(),
		multinodeCommand(),
	}
}

var jobID = setting.Is("CLUSTER.PROC, such as 884426.0", notify.IsJobID)

// maxNodes is far more than a schedd holds.
const maxNodes = 100_000_000
