package outage

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// A volume may have room for the ledger, whose file has free pages, but none for the files to submit.
func TestFilesThatFindNoRoomAreAReasonOfTheirOwnAndOneEvent(t *testing.T) {
	o := begin(t, "--identity=full")
	staging := o.Lab.Path("htcd", "data", "staging")
	o.mount(staging, "size=8k")
	o.Create("waiting", "exit 0\n")
	said := o.says("waiting", v1alpha1.ConditionSubmitted, "NoSpace")
	require.Regexp(
		t,
		`the files to be submitted, [0-9]+ KiB in [0-9]+ files, wait for room: the volume has none beside the [0-9]+ KiB and [0-9]+ files that submissions leave free`,
		said,
	)
	require.Contains(t, said, "have the volume enlarged")
	require.Equal(t, "NoSpace", o.column("waiting"))
	require.Equal(
		t,
		"0",
		o.SQL(fmt.Sprintf("SELECT count(*) FROM runs WHERE uid = '%s'", o.Get("waiting").UID)),
		"nothing is begun for which there is no room",
	)
	o.Event("waiting", "NoSpace")
	events := o.Kubectl("get", "events", "--field-selector=involvedObject.name=waiting", "-o",
		`jsonpath={range .items[*]}{.reason} {.count}{.series.count}{"\n"}{end}`)
	require.Equal(t, 1, strings.Count(events, "NoSpace"), events)
	require.Regexp(t, `NoSpace 1?\n`, events, "and it came once")

	_, err := o.Lab.RunAs(context.WithoutCancel(t.Context()), "root", "mount", "-o", "remount,size=8m", staging)
	require.NoError(t, err)
	o.succeeded("waiting")
	o.gone()
}

// handsOver returns the command in docs/upgrade.md that hands a volume over.
func handsOver(t *testing.T) string {
	t.Helper()
	for _, b := range trial.Blocks(t, "../../docs/upgrade.md") {
		if strings.Contains(b.Text, "chown -R") {
			return b.Text
		}
	}
	require.FailNow(t, "docs/upgrade.md has no such command")
	return ""
}

// Files that another uid left on a volume are no longer htcd's. The command is that of docs/upgrade.md.
func TestAVolumeOfAnotherUidIsHandedOverAsTheDocsSay(t *testing.T) {
	o := begin(t, "--identity=handed-over")
	o.Create("before", "echo before\n")
	job := o.Fetched("before")
	data := o.Lab.Path("htcd", "data")
	uid, err := o.Lab.RunAs(t.Context(), "root", "id", "-u", "htcd")
	require.NoError(t, err)
	gid, err := o.Lab.RunAs(t.Context(), "root", "id", "-g", "htcd")
	require.NoError(t, err)
	handOver := func(uid, gid string) {
		script := handsOver(t)
		_, err := o.Lab.RunAs(
			context.WithoutCancel(t.Context()),
			"root",
			"env",
			"DATA="+data,
			"RUN_AS_USER="+strings.TrimSpace(uid),
			"RUN_AS_GROUP="+strings.TrimSpace(gid),
			"sh",
			"-c",
			script,
		)
		require.NoError(t, err)
	}
	o.do(o.part("htcd").Stop)
	t.Cleanup(func() { handOver(uid, gid) })
	handOver("10002", gid)
	for _, modes := range []string{"0770", "0700"} { // as fsGroup leaves the top directory, and the original mode
		_, err = o.Lab.RunAs(t.Context(), "root", "chmod", modes, data)
		require.NoError(t, err)
		found, do := o.doctor("volume")
		require.Contains(t, found, "permission denied")
		require.Contains(t, do, "docs/upgrade.md")
	}
	handOver(uid, gid)
	o.do(o.part("htcd").Start)
	found, _ := o.doctor("volume")
	require.Contains(t, found, "can be written")
	o.Create("after", "echo after\n")
	o.succeeded("after")
	require.FileExists(t, filepath.Join(o.Kept(job), "0", "_condor_stdout"))
	o.gone()
}
