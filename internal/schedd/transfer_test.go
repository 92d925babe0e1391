package schedd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestProcsAreNamedInRanges(t *testing.T) {
	tag := condor.Tag{UID: "u", Attempt: 2}
	const head = `ClusterId == 7 && HTCJobUID =?= "u" && HTCJobAttempt =?= 2 && JobStatus == 4 && `
	for name, c := range map[string]struct {
		numbers []int
		want    string
	}{
		"one":             {[]int{3}, "(ProcId >= 3 && ProcId <= 3)"},
		"one after other": {[]int{0, 1, 2}, "(ProcId >= 0 && ProcId <= 2)"},
		"with gaps":       {[]int{0, 2, 3, 9}, "(ProcId >= 0 && ProcId <= 0 || ProcId >= 2 && ProcId <= 3 || ProcId >= 9 && ProcId <= 9)"},
	} {
		t.Run(name, func(t *testing.T) {
			require.EqualValues(t, head+c.want, Procs{Tag: tag, Cluster: 7, Numbers: c.numbers}.Constraint())
		})
	}
}

func TestTransfer(t *testing.T) {
	const edited = `echo "Set attribute \"SUBMIT_Iwd\" for 2 matching jobs."`
	const none = `printf 'Failed to set attribute "SUBMIT_Iwd" by constraint: ( (ClusterId == 99) )\nQueue transaction failed.  No attributes were set.\n' >&2; exit 1`
	const away = `printf "\nERROR: Can't find address of schedd nowhere\n" >&2; exit 1`
	for name, c := range map[string]struct {
		edit, transfer string
		kind           condor.Kind
		words          string
		proc           int // of a TransferError; -1: none
	}{
		"what is there is brought":              {edited, `echo "Fetching data files..."`, condor.Unknown, "", -1},
		"where no job matches nothing is asked": {none, `exit 1`, condor.Unknown, "", -1},
		"no schedd at the edit":                 {away, `exit 1`, condor.Unreachable, "condor_qedit: schedd schedd.test: ERROR: Can't find address", -1},
		"no schedd at the transfer":             {edited, away, condor.Unreachable, "condor_transfer_data: schedd schedd.test: ERROR: Can't find address", -1},
		"a job whose files are gone is named": {edited, `printf 'DCSchedd::receiveJobSandbox:7003:File transfer failed for target job 7.1: SCHEDD at 127.0.0.1 failed to send file(s)\nERROR: Failed to spool job files.\n' >&2; exit 1`,
			condor.Unknown, "failed to send file(s)", 1},
		"another cluster's job is not": {edited, `echo 'File transfer failed for target job 77.1: x' >&2; exit 1`, condor.Unknown, "target job 77.1", -1},
	} {
		t.Run(name, func(t *testing.T) {
			client := tools(t, long, map[string]string{"condor_qedit": c.edit, "condor_transfer_data": c.transfer})
			err := client.Transfer(
				t.Context(),
				Identity{},
				Procs{Tag: condor.Tag{UID: "u", Attempt: 1}, Cluster: 7, Numbers: []int{0, 1}},
				"/out/x",
			)
			if c.words == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.words)
			require.Equal(t, c.kind, condor.KindOf(err))
			proc := -1
			var at *TransferError
			if errors.As(err, &at) {
				proc = at.Proc
			}
			require.Equal(t, c.proc, proc)
		})
	}
}

func TestWhichFileTheScheddDoesNotHave(t *testing.T) {
	for said, want := range map[string]string{
		"|Error: 3 total failures: first failure: reading from file /spool/12/0/cluster12.proc0.subproc0/a: (errno 2) No such file or directory; TOOL failed": "/spool/12/0/cluster12.proc0.subproc0/a",
		"|Error: reading from file /spool/12/it's (errno 2) here: (errno 2) No such file or directory":                                                        "/spool/12/it's (errno 2) here",
		"|Error: reading from file /spool/12/a: (errno 5) Input/output error":                                                                                 "",
	} {
		require.Equal(t, want, (&TransferError{Err: &condor.Error{Stderr: said}}).Missing())
	}
}

func TestWhatAListOfFilesHasBeyondWhatCame(t *testing.T) {
	for list, c := range map[string]struct{ came, lacks []string }{
		"a,b,plain":            {[]string{"a,b", "plain"}, nil},
		"a,b,b":                {[]string{"a,b"}, []string{"b"}},
		"a,,,, blanks ,plain":  {[]string{" blanks ", ",", "a,", condor.Stdout}, []string{"plain"}},
		"line end,of\ntwo":     {[]string{"line\nend", "of\ntwo"}, nil},
		"":                     {[]string{condor.Stdout}, nil},
		"gone, gone too,there": {[]string{"there"}, []string{"gone", "gone too"}},
	} {
		require.Equal(t, c.lacks, lacking(list, c.came), "%q", list)
	}
}

func TestRelease(t *testing.T) {
	procs := Procs{Tag: condor.Tag{UID: "u", Attempt: 1}, Cluster: 7, Numbers: []int{0}}
	client := tools(
		t,
		long,
		map[string]string{"condor_qedit": `case "$*" in *"HTCJobFetched true") ;; *) echo "$*" >&2; exit 1 ;; esac`},
	)
	o, err := client.Change(t.Context(), Identity{}, Release{Procs: procs})
	require.NoError(t, err)
	require.True(t, o.Found)
	client = tools(
		t,
		long,
		map[string]string{
			"condor_qedit": `echo 'Failed to set attribute "HTCJobFetched" by constraint: (x)' >&2; exit 1`,
		},
	)
	o, err = client.Change(t.Context(), Identity{}, Release{Procs: procs})
	require.NoError(t, err, "it has left already")
	require.False(t, o.Found)
	client = tools(
		t,
		long,
		map[string]string{
			"condor_qedit": `printf 'Failed to set attribute "HTCJobFetched" by constraint: (x)\nAUTHENTICATE:1003:no\n' >&2; exit 1`,
		},
	)
	_, err = client.Change(t.Context(), Identity{}, Release{Procs: procs})
	require.Equal(t, condor.Credentials, condor.KindOf(err))

	dead := filepath.Join(t.TempDir(), "dead")
	client = tools(
		t,
		long,
		map[string]string{
			"condor_qedit": `[ ! -e ` + dead + ` ] || { echo 'Failed to connect to queue manager <127.0.0.1:9618>' >&2; exit 1; }
touch ` + dead + `; echo 'Failed to set attribute "HTCJobFetched" by constraint: (x)' >&2; exit 1`,
		},
	)
	_, err = client.Change(t.Context(), Identity{}, Release{Procs: procs})
	require.Equal(t, condor.Unreachable, condor.KindOf(err), "the schedd died while it was asked")
}

func TestJobsOfAFactoryAreReleasedByTheirRemoval(t *testing.T) {
	procs := Procs{Tag: condor.Tag{UID: "u", Attempt: 1}, Cluster: 7, Numbers: []int{0}, Factory: true}
	for answer, there := range map[string]bool{
		`echo 'Jobs matching constraint x have been marked for removal'`:           true,
		`echo "Couldn't find/remove all jobs matching constraint (x)" >&2; exit 1`: false, // of another account, too
	} {
		client := tools(t, long, map[string]string{"condor_rm": answer})
		o, err := client.Change(t.Context(), Identity{}, Release{Procs: procs})
		require.NoError(t, err)
		require.Equal(t, there, o.Found, answer)
	}
}

func TestALimitIsChangedWhileDAGManIsHeld(t *testing.T) {
	said := filepath.Join(t.TempDir(), "said")
	note := `echo "$(basename "$0") $*" >>` + said
	client := tools(t, long, map[string]string{"condor_hold": note, "condor_qedit": note, "condor_release": note})
	require.NoError(
		t,
		failed(
			client.Change(
				t.Context(),
				Identity{},
				SetMaxJobs{Tag: condor.Tag{UID: "u", Attempt: 1}, Cluster: 7, Jobs: 12},
			),
		),
	)
	text, err := os.ReadFile(said)
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	require.Len(t, lines, 4)
	for i, words := range []string{"-constraint JobStatus == 2 && (ClusterId == 7 && HTCJobUID", `DAGMan_MaxJobs 12 Arguments "12"`, "HoldReasonSubCode =?= 7285 && (ClusterId == 7"} {
		require.Contains(t, lines[i], words)
	}
}

func TestAJobThatRemovedItsStreamsLeavesTheRest(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "1"), 0o700))
	missing := func(stream string) string {
		return `echo 'File transfer failed for target job 7.1: reading from file /spool/` + stream + `: (errno 2) No such file or directory' >&2; exit 1`
	}
	client := tools(t, long, map[string]string{
		"condor_qedit": `case "$*" in *'Out "/dev/null"') touch ` + dir + `/noout ;; *'Err "/dev/null"') touch ` + dir + `/noerr ;; esac`,
		"condor_transfer_data": `if [ ! -f ` + dir + `/noerr ]; then ` + missing(condor.Stderr) + `; fi
if [ ! -f ` + dir + `/noout ]; then ` + missing(condor.Stdout) + `; fi`,
	})
	of := func(numbers ...int) Procs {
		return Procs{Tag: condor.Tag{UID: "u", Attempt: 1}, Cluster: 7, Numbers: numbers}
	}
	require.Error(t, client.Transfer(t.Context(), Identity{}, of(0, 1), dir), "the others come without it")
	require.NoError(t, client.Transfer(t.Context(), Identity{}, of(1), dir))
	require.FileExists(t, filepath.Join(dir, "1", condor.Stdout))
	require.FileExists(t, filepath.Join(dir, "1", condor.Stderr))
}

func TestProcsWithNumbersOfTheirOwnAreFetchedByThem(t *testing.T) {
	require.Equal(
		t,
		"ClusterId == 7 && "+(condor.Tag{UID: "u", Attempt: 2}).Constraint()+" && JobStatus == 4 && (HTCJobProc >= 3 && HTCJobProc <= 3 || HTCJobProc >= 7 && HTCJobProc <= 8)",
		Procs{Tag: condor.Tag{UID: "u", Attempt: 2}, Cluster: 7, Numbers: []int{3, 7, 8}, Own: true}.Constraint(),
	)
}

func TestAListBehindThoseOfCheckpointsLacksWhatDidNotCome(t *testing.T) {
	came := []string{"_condor_stdout", "_condor_stderr", ".htcd-ckpt", "final"}
	require.Empty(t, lacking(".htcd-ckpt.htcd-ckptfinal", came))
	require.Empty(t, lacking(".htcd-ckpt", came))
	require.Equal(t, []string{"more"}, lacking(".htcd-ckptfinal,more", came))
}
