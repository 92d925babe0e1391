package schedd

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/usage"
)

func TestQueueReadsJobs(t *testing.T) {
	client := tools(t, long, map[string]string{"condor_q": "cat <<'EOF'\n" + twoJobs + "EOF"})
	var jobs []condor.Job
	require.NoError(
		t,
		client.Query(t.Context(), Identity{}, Query{}, func(j condor.Job) error { jobs = append(jobs, j); return nil }),
	)
	no, three := false, 3
	require.Equal(t, []condor.Job{
		{
			Cluster:       9,
			Proc:          0,
			Tag:           condor.Tag{UID: "u", Attempt: 2},
			Status:        condor.Completed,
			LastStatus:    condor.Running,
			ExitBySignal:  &no,
			ExitCode:      &three,
			StageInFinish: 1795220850,
		},
		{Cluster: 9, Proc: 1, Status: condor.Held, HoldReasonCode: 16, HoldReason: "Spooling input data files"},
	}, jobs)
	require.Equal(t, "9.1", jobs[1].ID())
}

func TestQueueAnswers(t *testing.T) {
	stop := errors.New("enough")
	for name, c := range map[string]struct {
		script string
		fn     error
		kind   condor.Kind
		words  string
	}{
		"nothing at all is no jobs":                   {`:`, nil, condor.Unknown, ""},
		"an empty list is no jobs":                    {`printf '[\n]\n'`, nil, condor.Unknown, ""},
		"an answer that is cut short is none":         {`printf '[\n{"ClusterId":1,"ProcId":0,"JobStatus":1}\n'`, nil, condor.Unknown, "cut short"},
		"an answer that fails at its end is none":     {`printf '[\n{"ClusterId":1,"ProcId":0,"JobStatus":1}\n]\n'; echo "Failed to fetch ads" >&2; exit 1`, nil, condor.Unreachable, "Failed to fetch ads"},
		"a failure half-way is told by its own words": {`printf '[\n'; echo "Unable to locate remote schedd" >&2; exit 1`, nil, condor.Unreachable, "condor_q: schedd schedd.test: Unable to locate remote schedd"},
		"an ad that is no job's is no answer":         {`echo '[{"ClusterId":1}]'`, nil, condor.Unknown, "without ClusterId, ProcId or JobStatus"},
		"advice to administrators is left out":        {`printf 'Error: (null)\n\nExtra Info: You probably saw this error because\nnot running\n' >&2; exit 1`, nil, condor.Unreachable, "condor_q: schedd schedd.test: Error: no schedd was found"},
		"no record in the collector is no schedd":     {`echo "Error: Collector has no record of schedd/submitter" >&2; exit 1`, nil, condor.Unreachable, "no record"},
		"a schedd that dies at the door is no schedd": {`printf 'AUTHENTICATE:1002:Failure performing handshake\nAUTHENTICATE:1004:Failed to authenticate using KERBEROS\n' >&2; exit 1`, nil, condor.Unreachable, "AUTHENTICATE:1002"},
		"the caller's own error comes back as it is":  {`printf '[\n{"ClusterId":1,"ProcId":0,"JobStatus":1}\n,\n'; sleep 100`, stop, condor.Unknown, "enough"},
	} {
		t.Run(name, func(t *testing.T) {
			client := tools(t, long, map[string]string{"condor_q": c.script})
			err := client.Query(t.Context(), Identity{}, Query{}, func(condor.Job) error { return c.fn })
			if c.words == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.words)
			require.NotContains(t, err.Error(), "Extra Info")
			require.Equal(t, c.kind, condor.KindOf(err))
			if c.fn != nil {
				require.Equal(t, c.fn, err)
			}
		})
	}
}

func TestRemoveOfNothingIsNoError(t *testing.T) {
	const last = `printf "\nCouldn't find/remove all jobs matching constraint (x)\n" >&2; exit 1`
	for name, c := range map[string]struct {
		script string
		kind   condor.Kind
		ok     bool
	}{
		"jobs were marked": {`echo "All jobs matching constraint (x) have been marked for removal"`, condor.Unknown, true},
		"nothing matched":  {last, condor.Unknown, true},
		"the same line after an authentication failure": {`echo "AUTHENTICATE:1003:Failed to authenticate with any method" >&2; ` + last, condor.Credentials, false},
		"the same line after a refused constraint":      {`echo "DCSchedd::actOnJobs:1:Can't insert constraint into ClassAd" >&2; ` + last, condor.Unknown, false},
		"a tool that says (null)":                       {`echo "condor_rm: (null)" >&2; exit 1`, condor.Unreachable, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := tools(t, long, map[string]string{"condor_rm": c.script})
			counted := map[string]error{}
			client.o.Ran = func(command string, _ time.Duration, err error) { counted[command] = err }
			err := failed(client.Change(t.Context(), Identity{}, Remove{Where: "x", Reason: "y"}))
			require.Equal(t, c.ok, err == nil, "%v", err)
			require.Equal(t, c.ok, counted["condor_rm"] == nil, "what the metrics count as an error")
			require.Equal(t, c.kind, condor.KindOf(err))
		})
	}
}

// hang is a tool that starts a child and waits indefinitely; both write their process ids.
const hang = `echo $$ >>%[1]s; (echo "$(exec sh -c 'echo $PPID')" >>%[1]s; exec sleep 1000) & wait`

func TestWhatOneJobsAdSpoilsIsNarrowedDownToThatJob(t *testing.T) {
	client := tools(t, long, map[string]string{"condor_q": hostile})
	var jobs []condor.Job
	require.NoError(
		t,
		client.Query(
			t.Context(),
			Identity{},
			Query{Where: "A"},
			func(j condor.Job) error { jobs = append(jobs, j); return nil },
		),
	)
	require.Len(t, jobs, 3, "each once")
	require.Equal(t, condor.Job{Cluster: 1, Status: condor.Running}, jobs[0])
	for _, j := range jobs[1:] {
		require.True(t, j.Unread == (j.Proc == 1 || j.Status == condor.Running && j.Reasoned), j.ID())
	}
	require.Equal(
		t,
		condor.Job{Cluster: 2, Proc: 1, Status: condor.Held, Tag: condor.Tag{UID: "u"}, Unread: true, Reasoned: true},
		jobs[2],
	)
}

func TestReasonsAreAskedForWhereTheyAreNeeded(t *testing.T) {
	client := tools(t, long, map[string]string{"condor_q": `case "$*" in
*HoldReason,*"ProcId >= 1 && ProcId <= 3"*"size(unparse(HoldReason)) > 4096"*) echo '[{"ClusterId":1,"ProcId":1,"JobStatus":5,"HoldReason":"why"}]' ;;
*"Reason,"*|*"Reason "*) exit 1 ;;
*"ClusterId == 1"*"ProcId >= 1 && ProcId <= 3"*) echo '[{"ClusterId":1,"ProcId":1,"JobStatus":5},{"ClusterId":1,"ProcId":2,"JobStatus":5}]' ;;
*) echo '[{"ClusterId":1,"ProcId":0,"JobStatus":2},{"ClusterId":1,"ProcId":1,"JobStatus":5},{"ClusterId":1,"ProcId":2,"JobStatus":5},{"ClusterId":1,"ProcId":3,"JobStatus":5}]' ;;
esac`})
	said := map[int]string{} // proc 2 has a long reason, proc 3 leaves the queue between the questions
	require.NoError(t, client.Query(t.Context(), Identity{}, Query{Where: "A"}, func(j condor.Job) error {
		if j.Held() && !j.Reasoned {
			return ErrReasons
		}
		said[j.Proc] = j.HoldReason
		return nil
	}))
	require.Equal(t, map[int]string{0: "", 1: "why", 2: noReason}, said)
}

func TestLongListsOfNumbersAreSearchedByHalves(t *testing.T) {
	require.EqualValues(t, "A == 7", anyOf("A", []int{7, 7}))
	require.EqualValues(t, "A >= 1 && A <= 3", anyOf("A", []int{3, 1, 2}))
	require.EqualValues(t, "member(A, {1,3,9})", anyOf("A", []int{9, 3, 1}))
	numbers := []int{40, 41, 99}
	for i := range 40 {
		numbers = append(numbers, i)
	}
	require.EqualValues(
		t,
		"(A <= 20 ? A >= 0 && A <= 20 : member(A, {21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,99}))",
		anyOf("A", numbers),
	)
	numbers = nil
	for i := range 4000 {
		numbers = append(numbers, 10_000_000+9999*i)
	}
	require.Less(
		t,
		len(anyOf("ClusterId", numbers)),
		60_000,
		"with the numbers of procs it must stay below 128 KiB, the longest argument",
	)
}

func TestTheHashOfASpecIsOneThatHtcdCanHaveWritten(t *testing.T) {
	for text, want := range map[string]string{
		"c3232e2af32e5382f7f2d0e99cfb8c9b": "c3232e2af32e5382f7f2d0e99cfb8c9b",
		"":                                 "",
		"\x1b[2J":                          "",
		strings.Repeat("ab", 1<<20):        "",
	} {
		require.Equal(t, want, hash(classad.StringValue(text)))
	}
	require.Empty(t, hash(classad.IntValue(7)))
}

func TestTextsOfAnAdAreFitToBeShown(t *testing.T) {
	ads := 0
	require.NoError(
		t,
		classad.ReadJSON(
			strings.NewReader(
				`[{"ClusterId":1,"ProcId":0,"JobStatus":5,"Owner":"al\u001b[31mice","HTCJobOutputs":"a\u202eb\u0007",
		"HoldReason":"no\u001b]0;owned\u0007 disk\nand \u202egnp.exe\u009b","RemoveReason":"`+"\xff\xfe"+`","LastHoldReason":"as usual (by user bob)"}]`,
			),
			func(ad classad.Ad) error {
				j, err := newJob(ad)
				require.NoError(t, err)
				require.Equal(t, "no␛]0;owned␇ disk and �gnp.exe�", j.HoldReason)
				require.Regexp(t, "^�+$", j.RemoveReason)
				require.Equal(t, "as usual (by user bob)", j.LastHoldReason)
				require.Equal(t, "al␛[31mice", j.Owner)
				require.Equal(t, "a\u202eb\a", j.Outputs, "the files are called so")
				ads++
				return nil
			},
		),
	)
	require.Equal(t, 1, ads)
}

func TestAHeldJobOfSeveralNodesHadEndedIfItsOutputWasTransferred(t *testing.T) {
	for ends, is := range map[string]bool{"JobCurrentFinishTransferOutputDate = 1010": true, "LastVacateTime = 1010": false} {
		ad, err := classad.ParseAd(
			"ClusterId = 7\nProcId = 0\nJobStatus = 5\nHoldReasonCode = 3\nJobCurrentStartDate = 1000\n" +
				"ExitBySignal = false\nExitCode = 7\n" + ends + "\n",
		)
		require.NoError(t, err)
		j, err := newJob(ad)
		require.NoError(t, err)
		require.Equal(t, is, j.Returned() != nil, ends)
	}
}

func TestWhatAJobHasUsed(t *testing.T) {
	const ad = `ClusterId = 7
ProcId = 0
JobStatus = 4
JobStartDate = 900
JobCurrentStartDate = 1000
EnteredCurrentStatus = 1010
CompletionDate = 1010
RemoteUserCpu = 3.0
RemoteSysCpu = 0.5
ResidentSetSize = 125000
MemoryUsage = ((ResidentSetSize + 1023) / 1024)
DiskUsage = 30000
RequestCpus = 2
MaxHosts = 1
RequestMemory = 200
RequestDisk = DiskUsage
MemoryProvisioned = 256
`
	read := func(ad string) condor.Job {
		parsed, err := classad.ParseAd(ad)
		require.NoError(t, err)
		j, err := newJob(parsed)
		require.NoError(t, err)
		return j
	}
	now := time.Unix(2000, 0)
	full := usage.Use{CPU: 3500, Wall: 10, Memory: 123, Disk: 30000, AskedCPUs: 2, AskedMemory: 200}
	for what, c := range map[string]struct {
		change func(*condor.Job)
		want   func(*usage.Use)
	}{
		"of its last execution":                      {func(*condor.Job) {}, func(*usage.Use) {}},
		"until now, if it runs":                      {func(j *condor.Job) { j.Status, j.CompletionDate = condor.Running, 0 }, func(u *usage.Use) { u.Wall = 1000 }},
		"memory that the starter has measured":       {func(j *condor.Job) { j.MemoryUsage = 99 }, func(u *usage.Use) { u.Memory = 99 }},
		"a request for memory that is an expression": {func(j *condor.Job) { j.RequestMemory = 0 }, func(u *usage.Use) { u.AskedMemory = 256 }},
		"the cores of all nodes":                     {func(j *condor.Job) { j.MaxHosts = 4 }, func(u *usage.Use) { u.AskedCPUs = 8 }},
		"a completed one that was removed": {func(j *condor.Job) {
			j.Status, j.LastStatus, j.EnteredCurrentStatus = condor.Removed, condor.Completed, 1500
		}, func(*usage.Use) {}},
		"nothing, if it never started":                        {func(j *condor.Job) { j.JobStartDate = 0 }, func(u *usage.Use) { *u = usage.Use{} }},
		"no less than nothing, whatever its owner has edited": {func(j *condor.Job) { j.UserCPU, j.CompletionDate = -8, 3 }, func(u *usage.Use) { u.CPU, u.Wall = 0, 0 }},
		"no more than can be written":                         {func(j *condor.Job) { j.UserCPU, j.RequestDisk = math.MaxFloat64, math.MaxInt64 }, func(u *usage.Use) { u.CPU, u.AskedDisk = usage.Most, usage.Most }},
	} {
		t.Run(what, func(t *testing.T) {
			j, want := read(ad), full
			c.change(&j)
			c.want(&want)
			require.Equal(t, want, j.Use(now))
			require.Equal(t, want, usage.Parse(j.Use(now).String()))
		})
	}
}
