package schedd

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQueueReadsJobs(t *testing.T) {
	client := tools(t, long, map[string]string{"condor_q": "cat <<'EOF'\n" + twoJobs + "EOF"})
	var jobs []Job
	require.NoError(t, client.Queue(t.Context(), Identity{}, "", func(j Job) error { jobs = append(jobs, j); return nil }))
	no, three := false, 3
	require.Equal(t, []Job{
		{
			Cluster:       9,
			Proc:          0,
			Tag:           Tag{UID: "u", Attempt: 2},
			Status:        Completed,
			LastStatus:    Running,
			ExitBySignal:  &no,
			ExitCode:      &three,
			StageInFinish: 1795220850,
		},
		{Cluster: 9, Proc: 1, Status: Held, HoldReasonCode: 16, HoldReason: "Spooling input data files"},
	}, jobs)
	require.Equal(t, "9.1", jobs[1].ID())
}

func TestQueueAnswers(t *testing.T) {
	stop := errors.New("enough")
	for name, c := range map[string]struct {
		script string
		fn     error
		kind   Kind
		words  string
	}{
		"nothing at all is no jobs":                   {`:`, nil, Unknown, ""},
		"an empty list is no jobs":                    {`printf '[\n]\n'`, nil, Unknown, ""},
		"an answer that is cut short is none":         {`printf '[\n{"ClusterId":1,"ProcId":0,"JobStatus":1}\n'`, nil, Unknown, "cut short"},
		"an answer that fails at its end is none":     {`printf '[\n{"ClusterId":1,"ProcId":0,"JobStatus":1}\n]\n'; echo "Failed to fetch ads" >&2; exit 1`, nil, Unreachable, "Failed to fetch ads"},
		"a failure half-way is told by its own words": {`printf '[\n'; echo "Unable to locate remote schedd" >&2; exit 1`, nil, Unreachable, "condor_q: schedd schedd.test: Unable to locate remote schedd"},
		"an ad that is no job's is no answer":         {`echo '[{"ClusterId":1}]'`, nil, Unknown, "without ClusterId, ProcId or JobStatus"},
		"advice to administrators is left out":        {`printf 'Error: (null)\n\nExtra Info: You probably saw this error because\nnot running\n' >&2; exit 1`, nil, Unreachable, "condor_q: schedd schedd.test: Error: no schedd was found"},
		"no record in the collector is no schedd":     {`echo "Error: Collector has no record of schedd/submitter" >&2; exit 1`, nil, Unreachable, "no record"},
		"a schedd that dies at the door is no schedd": {`printf 'AUTHENTICATE:1002:Failure performing handshake\nAUTHENTICATE:1004:Failed to authenticate using KERBEROS\n' >&2; exit 1`, nil, Unreachable, "AUTHENTICATE:1002"},
		"the caller's own error comes back as it is":  {`printf '[\n{"ClusterId":1,"ProcId":0,"JobStatus":1}\n,\n'; sleep 100`, stop, Unknown, "enough"},
	} {
		t.Run(name, func(t *testing.T) {
			client := tools(t, long, map[string]string{"condor_q": c.script})
			err := client.Queue(t.Context(), Identity{}, "", func(Job) error { return c.fn })
			if c.words == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.words)
			require.NotContains(t, err.Error(), "Extra Info")
			require.Equal(t, c.kind, KindOf(err))
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
		kind   Kind
		ok     bool
	}{
		"jobs were marked": {`echo "All jobs matching constraint (x) have been marked for removal"`, Unknown, true},
		"nothing matched":  {last, Unknown, true},
		"the same line after an authentication failure": {`echo "AUTHENTICATE:1003:Failed to authenticate with any method" >&2; ` + last, Credentials, false},
		"the same line after a refused constraint":      {`echo "DCSchedd::actOnJobs:1:Can't insert constraint into ClassAd" >&2; ` + last, Unknown, false},
		"a tool that says (null)":                       {`echo "condor_rm: (null)" >&2; exit 1`, Unreachable, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := tools(t, long, map[string]string{"condor_rm": c.script})
			counted := map[string]error{}
			client.o.Ran = func(command string, _ time.Duration, err error) { counted[command] = err }
			err := client.Remove(t.Context(), Identity{}, "x", "y")
			require.Equal(t, c.ok, err == nil, "%v", err)
			require.Equal(t, c.ok, counted["condor_rm"] == nil, "what the metrics count as an error")
			require.Equal(t, c.kind, KindOf(err))
		})
	}
}

// hang is a tool that starts a child and waits indefinitely; both write their process ids.
const hang = `echo $$ >>%[1]s; (echo "$(exec sh -c 'echo $PPID')" >>%[1]s; exec sleep 1000) & wait`

func TestWhatOneJobsAdSpoilsIsNarrowedDownToThatJob(t *testing.T) {
	client := tools(t, long, map[string]string{"condor_q": hostile})
	var jobs []Job
	require.NoError(
		t,
		client.Queue(t.Context(), Identity{}, "A", func(j Job) error { jobs = append(jobs, j); return nil }),
	)
	require.Len(t, jobs, 3, "each once")
	require.Equal(t, Job{Cluster: 1, Status: Running}, jobs[0])
	for _, j := range jobs[1:] {
		require.True(t, j.Unread == (j.Proc == 1 || j.Status == Running && j.Reasoned), j.ID())
	}
	require.Equal(t, Job{Cluster: 2, Proc: 1, Status: Held, Tag: Tag{UID: "u"}, Unread: true, Reasoned: true}, jobs[2])
}

func TestReasonsAreAskedForWhereTheyAreNeeded(t *testing.T) {
	client := tools(t, long, map[string]string{"condor_q": `case "$*" in
*HoldReason,*"ProcId >= 1 && ProcId <= 3"*"size(unparse(HoldReason)) > 4096"*) echo '[{"ClusterId":1,"ProcId":1,"JobStatus":5,"HoldReason":"why"}]' ;;
*"Reason,"*|*"Reason "*) exit 1 ;;
*"ClusterId == 1"*"ProcId >= 1 && ProcId <= 3"*) echo '[{"ClusterId":1,"ProcId":1,"JobStatus":5},{"ClusterId":1,"ProcId":2,"JobStatus":5}]' ;;
*) echo '[{"ClusterId":1,"ProcId":0,"JobStatus":2},{"ClusterId":1,"ProcId":1,"JobStatus":5},{"ClusterId":1,"ProcId":2,"JobStatus":5},{"ClusterId":1,"ProcId":3,"JobStatus":5}]' ;;
esac`})
	said := map[int]string{} // proc 2 has a long reason, proc 3 leaves the queue between the questions
	require.NoError(t, client.Queue(t.Context(), Identity{}, "A", func(j Job) error {
		if j.Held() && !j.Reasoned {
			return ErrReasons
		}
		said[j.Proc] = j.HoldReason
		return nil
	}))
	require.Equal(t, map[int]string{0: "", 1: "why", 2: noReason}, said)
}

func TestLongListsOfNumbersAreSearchedByHalves(t *testing.T) {
	require.Equal(t, "A == 7", anyOf("A", []int{7, 7}))
	require.Equal(t, "A >= 1 && A <= 3", anyOf("A", []int{3, 1, 2}))
	require.Equal(t, "member(A, {1,3,9})", anyOf("A", []int{9, 3, 1}))
	numbers := []int{40, 41, 99}
	for i := range 40 {
		numbers = append(numbers, i)
	}
	require.Equal(
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
