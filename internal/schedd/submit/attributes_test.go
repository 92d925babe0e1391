package submit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/htcopts"
)

func TestAPatternAllowsAttributesThatDecideNothing(t *testing.T) {
	for patterns, names := range map[string]string{
		"*": "Cohort NeedsWindow BenchHours Tap_Group flavour OS x", "Lab*,Bench?": "LabNumber labnumber Lab BenchA",
	} {
		for name := range strings.FieldsSeq(names) {
			d := description()
			d.Options, d.Attributes = "MY."+name+" = 3 * 2", strings.Split(patterns, ",")
			text, err := submitText(d)
			require.NoError(t, err)
			require.Contains(t, text, "\nMy."+name+" = 3 * 2\n")
			d.Options = name + " = 1"
			_, err = d.Render()
			require.ErrorContains(t, err, "write +"+name+" = ...")
		}
	}
	for _, name := range []string{
		"Owner", "owner", "User", "AcctGroup", "JobUniverse", "HookKeyword", "JobStarterDebug", "Requirements", "RequestCpus", "HTCJobUID", "htcpool", "Cmd", "Iwd",
		"JobPrio", "PeriodicRemove", "OnExitHold", "SingularityImage", "x509userproxy", "OAuthServicesNeeded", "StarterUserLog", "TransferPlugins", "RemoteUser",
		"SpoolOnEvict", "JobMaterializeLimit", "DAGManJobId", "GridResource", "MachineAttrCpus0", "_condor_X", "mine_ContainerPort", "NiceUser", "MaxHosts",
		"Other", "LabX",
	} {
		d := description()
		d.Options, d.Attributes = "+"+name+" = true", []string{"*"}
		if name == "Other" || name == "LabX" {
			d.Attributes = []string{"Lab?Y", "*Z"}
		}
		_, err := d.Render()
		require.Equal(t, condor.Refused, condor.KindOf(err), name)
	}
	for name := range strings.FieldsSeq("Owner htcjobname RequestMemory a-b +x *) [a]") {
		require.Error(t, CheckAttributes([]string{"*", name}), name)
	}
	require.NoError(t, CheckAttributes(append([]string{"*", "Lab*", "Cohort"}, htcopts.Attributes...)))
}

// HTCondor itself acts upon these two, by the words of its manual: they say what a job is counted for, and that it
// needs a credential.
func TestAttributesThatNeedNoPatternAreNoneThatHTCondorActsUpon(t *testing.T) {
	var acts []string
	for _, name := range htcopts.Attributes {
		if !htcopts.Matches([]string{"*"}, name) {
			acts = append(acts, name)
		}
	}
	require.ElementsMatch(
		t,
		[]string{"AccountingGroup", "SendCredential", "ProjectName", "JobDescription", "ContainerOS"},
		acts,
	)
}
