package schedd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/programtest"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// tools writes sh scripts that stand in for HTCondor's tools and returns a client that finds them.
func tools(t *testing.T, timeout time.Duration, scripts map[string]string) *Client {
	t.Helper()
	dir := t.TempDir()
	if _, ok := scripts["condor_config_val"]; !ok {
		scripts["condor_config_val"] = `case $1 in SCHEDD_HOST) echo schedd.test ;; *) echo "Not defined: $1" >&2; exit 1 ;; esac`
	}
	for name, text := range scripts {
		programtest.Write(t, filepath.Join(dir, name), "#!/bin/sh\n"+text+"\n")
	}
	return New(Options{BinDir: dir, CondorConfig: "/cfg", Krb5Config: "/krb5", Pool: "pool.test", Timeout: timeout})
}

// staged returns a directory with a sandbox of n procs.
func staged(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	d := submit.Description{
		Tag: condor.Tag{
			UID:       "7f1f7c0e-8a43-4c0e-9d57-2f1b9bb1c7a1",
			Attempt:   1,
			Namespace: "default",
			Name:      "zero",
		},
		BatchName: "zero",
		Queue:     n,
		Image:     "docker://centos",
		Command:   "bash",
		Source:    "echo A\n",
	}
	s, err := d.Render()
	require.NoError(t, err)
	require.NoError(t, submit.Stage(dir, s, "tok-0123456789"))
	return dir
}

const long = 20 * time.Second

func TestSubmit(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   condor.Cluster
		kind   condor.Kind
		words  string
		made   *condor.Cluster
	}{
		"the range is the cluster":             {`echo "9.0 - 9.2"`, condor.Cluster{ID: 9, Procs: 3}, condor.Unknown, "", nil},
		"warnings on stderr are no failure":    {`echo "WARNING: odd" >&2; echo "9.0 - 9.2"`, condor.Cluster{ID: 9, Procs: 3}, condor.Unknown, "", nil},
		"a range and exit 1 is half a cluster": {`echo "9.0 - 9.2"; echo "ERROR: Failed to spool job files." >&2; exit 1`, condor.Cluster{}, condor.Unknown, "condor_submit: ERROR: Failed to spool job files.", &condor.Cluster{ID: 9, Procs: 3}},
		"nothing and exit 0 is no cluster":     {`:`, condor.Cluster{}, condor.Unknown, `condor_submit: expected a range such as 9.0 - 9.2, found ""`, nil},
		"another number of procs is told":      {`echo "9.0 - 9.1"`, condor.Cluster{}, condor.Unknown, "cluster 9 has 2 procs, expected 3", &condor.Cluster{ID: 9, Procs: 2}},
		"a credential that cannot be had is told": {`echo "Failed to process job credential requests (1): 'ERROR: (2) invoking /usr/bin/x '; BAILING OUT."; exit 1`, condor.Cluster{}, condor.Unknown,
			"condor_submit: Failed to process job credential requests (1): 'ERROR: (2) invoking /usr/bin/x '; BAILING OUT.", nil},
		"a silent failure is told":         {`exit 7`, condor.Cluster{}, condor.Unknown, "condor_submit: exit status 7", nil},
		"a refusal keeps HTCondor's words": {`printf 'ERROR: Parse error in expression: \n\tRequirements = (((\n\t\n' >&2; exit 1`, condor.Cluster{}, condor.Refused, "condor_submit: ERROR: Parse error in expression: | Requirements = (((", nil},
		"an unknown command is refused":    {`printf '\nERROR: Failed to parse command file (line 2).\n' >&2; exit 1`, condor.Cluster{}, condor.Refused, "Failed to parse command file", nil},
		"a site's requirement is a refusal": {`echo 'ERROR: Failed to commit job submission into the queue.
ERROR: You must say +Project.' >&2; exit 1`, condor.Cluster{}, condor.Refused, "You must say +Project.", nil},
		"what a user wrote is no outage": {`printf 'ERROR: retry_until=int(strcat("9", "Connection refused")) is invalid, it must be an integer or boolean expression.\n' >&2; exit 1`, condor.Cluster{}, condor.Refused, "Connection refused", nil},
		"nor a lack of rights":           {`printf '\nERROR: x = "SECMAN:2010 DENIED | CEDAR:6001: | AUTHENTICATE:1004:" | ERROR: Failed to connect\n' >&2; exit 1`, condor.Cluster{}, condor.Unknown, "SECMAN", nil},
		"nor in a site's reason": {`echo 'ERROR: Failed to commit job submission into the queue.
ERROR: there is no project Connection refused DENIED MAX_JOBS_PER_OWNER' >&2; exit 1`, condor.Cluster{}, condor.Refused, "no project", nil},
		"a limit at the commit": {`echo 'ERROR: Failed to commit job submission into the queue.
ERROR: Number of submitted jobs would exceed MAX_JOBS_PER_OWNER' >&2; exit 1`, condor.Cluster{}, condor.Limit, "MAX_JOBS_PER_OWNER", nil},
		"a commit without an answer is no refusal: the schedd may have the jobs": {`printf '\nERROR: Failed to commit job submission into the queue.\n' >&2; exit 1`, condor.Cluster{}, condor.Unknown, "Failed to commit", nil},
		"what has a cluster was not refused":                                     {`echo "9.0 - 9.2"; printf 'ERROR: Failed to commit job submission into the queue.\nERROR: no\n' >&2; exit 1`, condor.Cluster{}, condor.Unknown, "Failed to commit", &condor.Cluster{ID: 9, Procs: 3}},
		"a limit may pass":                                                       {`printf 'ERROR: Failed to create proc\nNumber of submitted jobs would exceed MAX_JOBS_PER_SUBMISSION\n' >&2; exit 1`, condor.Cluster{}, condor.Limit, "MAX_JOBS_PER_SUBMISSION", nil},
		"no ticket is about credentials":                                         {`printf 'ERROR: Failed to connect to local queue manager\nAUTHENTICATE:1003:Failed to authenticate with any method\nAUTHENTICATE:1004:Failed to authenticate using KERBEROS\n' >&2; exit 1`, condor.Cluster{}, condor.Credentials, "AUTHENTICATE:1003", nil},
		"an account the schedd does not have":                                    {`printf 'ERROR: Failed to commit job submission into the queue.\nERROR: Setting owner to "ghost", which is not a valid user account\n' >&2; exit 1`, condor.Cluster{}, condor.NotAuthorised, "ghost", nil},
		"a schedd that says no":                                                  {`printf 'SECMAN:2010:Received "DENIED" from server for user x@y using method KERBEROS.\n' >&2; exit 1`, condor.Cluster{}, condor.NotAuthorised, "DENIED", nil},
		"no schedd":                                                              {`printf "\nERROR: Can't find address of schedd nowhere\n" >&2; exit 1`, condor.Cluster{}, condor.Unreachable, "Can't find address", nil},
		"two clusters are not one":                                               {`printf '9.0 - 9.0\n10.0 - 10.1\n'`, condor.Cluster{}, condor.Unknown, "expected a range", nil},
		"a failure nobody has seen may pass":                                     {`echo "ERROR: the moon" >&2; exit 1`, condor.Cluster{}, condor.Unknown, "the moon", nil},
		"killed from outside":                                                    {`kill -9 $$`, condor.Cluster{}, condor.Unknown, "condor_submit: signal: killed", nil},
	} {
		t.Run(name, func(t *testing.T) {
			client := tools(t, long, map[string]string{"condor_submit": c.script})
			got, err := client.Submit(t.Context(), Identity{}, staged(t, 3))
			require.Equal(t, c.want, got)
			if c.words == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.words)
			require.Equal(t, c.kind, condor.KindOf(err))
			var e *condor.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.made, e.Cluster)
			require.Equal(t, "condor_submit", e.Command)
		})
	}
}

func TestSubmitKnowsOnlyWhatStageWrote(t *testing.T) {
	_, err := tools(t, long, map[string]string{}).Submit(t.Context(), Identity{}, t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCommandLines(t *testing.T) {
	record := `printf '%%s\n' "$@" >>` + "%[1]s" + `; echo "in $(pwd)" >>%[1]s; `
	log := filepath.Join(t.TempDir(), "log")
	client := tools(t, long, map[string]string{
		"condor_submit":  fmt.Sprintf(record, log) + `echo "1.0 - 1.0"`,
		"condor_q":       fmt.Sprintf(record, log),
		"condor_history": fmt.Sprintf(record, log) + `printf '[\n]\n'`,
		"condor_rm":      fmt.Sprintf(record, log),
		"condor_hold":    fmt.Sprintf(record, log),
		"condor_release": fmt.Sprintf(record, log),
	})
	dir := staged(t, 1)
	none := func(condor.Job) error { return nil }
	for name, c := range map[string]struct {
		call func() error
		want string
	}{
		"submit": {func() error { _, err := client.Submit(t.Context(), Identity{}, dir); return err }, "-name schedd.test -pool pool.test -spool -terse job.sub in " + dir},
		"queue":  {func() error { return client.Query(t.Context(), Identity{}, Query{Where: "A == 1"}, none) }, "-name schedd.test -pool pool.test -allusers -json -attributes " + Projection + " -constraint A == 1 in /"},
		"history": {func() error {
			return client.Query(t.Context(), Identity{}, Query{Where: "A == 1", Left: &HistoryBounds{Limit: 2, ScanLimit: 3, Since: "4.5"}}, none)
		}, "-name schedd.test -pool pool.test -backwards -json -attributes " + Projection + " -constraint A == 1 -since 4.5 -limit 2 -scanlimit 3 in /"},
		"remove": {func() error {
			return failed(client.Change(t.Context(), Identity{}, Remove{Where: "A == 1", Reason: " because\nof it "}))
		}, "-name schedd.test -pool pool.test -constraint A == 1 -reason because of it in /"},
		"hold": {func() error {
			return failed(client.Change(t.Context(), Identity{}, HoldIdle{Where: PoolConstraint("grid", "a", "b"), Reason: "no reason"}))
		}, `-name schedd.test -pool pool.test -constraint (JobStatus == 1 || JobUniverse == 7 && JobStatus == 2 || HTCJobFactory =!= undefined && ProcId =?= undefined && (JobMaterializePaused ?: 0) == 0) && (HTCPool =?= "grid" && member(HTCWorkflowUID ?: HTCJobUID, {"a","b"})) -reason no reason -subcode 7284 in /`},
		"release": {func() error {
			return failed(client.Change(t.Context(), Identity{}, ReleaseHeld{Where: "A || B", Reason: "done"}))
		},
			`-name schedd.test -pool pool.test -constraint (JobStatus == 5 && HoldReasonCode =?= 1 && HoldReasonSubCode =?= 7284 || HTCJobFactory =!= undefined && ProcId =?= undefined && substr(JobMaterializePauseReason, 0, 14) == "htcd: HTCPool ") && (A || B) -reason done in /`},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(log)
			require.NoError(t, c.call())
			got, err := os.ReadFile(log)
			require.NoError(t, err)
			require.Equal(t, c.want, strings.Join(strings.Fields(string(got)), " "))
		})
	}
}

func TestToolsSeeNothingOfOurEnvironment(t *testing.T) {
	t.Setenv("HTCD_SECRET", "x")
	t.Setenv("_CONDOR_TOOL_DEBUG", "D_ALL")
	t.Setenv("KRB5CCNAME", "FILE:/root/other")
	log := filepath.Join(t.TempDir(), "log")
	client := tools(t, long, map[string]string{"condor_rm": "env >" + log})
	require.NoError(t, failed(client.Change(t.Context(), Identity{CCache: "/dev/shm/cc"}, Remove{Where: "true"})))
	got, err := os.ReadFile(log)
	require.NoError(t, err)
	var names []string
	for l := range strings.Lines(string(got)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(l), "="); name {
		case "PWD", "OLDPWD", "SHLVL", "_": // the shell's own
		case "KRB5CCNAME":
			require.Equal(t, "FILE:/dev/shm/cc", value)
			names = append(names, name)
		default:
			names = append(names, name)
		}
	}
	require.ElementsMatch(
		t,
		[]string{
			"PATH",
			"HOME",
			"LANG",
			"LC_ALL",
			"TZ",
			"CONDOR_CONFIG",
			"KRB5_CONFIG",
			"KRB5CCNAME",
			"_condor_SEC_TOKEN_DIRECTORY",
			"_condor_SCITOKENS_FILE",
		},
		names,
	)
}

func TestAnIdentityShowsWhatIsItsAndNothingElse(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	client := tools(t, long, map[string]string{"condor_rm": "env >" + log})
	for name, c := range map[string]struct {
		id   Identity
		want []string
	}{
		"a ticket": {Identity{CCache: "/shm/cc"}, []string{"KRB5CCNAME=FILE:/shm/cc", "_condor_SEC_TOKEN_DIRECTORY=/nonexistent", "_condor_SCITOKENS_FILE=/nonexistent"}},
		"an IDTOKEN": {Identity{Tokens: "/shm/t"}, []string{"KRB5CCNAME=FILE:/nonexistent", "_condor_SEC_TOKEN_DIRECTORY=/shm/t",
			"_condor_SEC_CLIENT_AUTHENTICATION_METHODS=IDTOKENS", "_condor_SCITOKENS_FILE=/nonexistent"}},
		"a SciToken": {Identity{SciToken: "/shm/t/token", Claims: "its claims"}, []string{"KRB5CCNAME=FILE:/nonexistent", "_condor_SEC_TOKEN_DIRECTORY=/nonexistent",
			"_condor_SEC_CLIENT_AUTHENTICATION_METHODS=SCITOKENS", "_condor_SCITOKENS_FILE=/shm/t/token"}},
		"none": {Identity{}, []string{"KRB5CCNAME=FILE:/nonexistent", "_condor_SEC_TOKEN_DIRECTORY=/nonexistent", "_condor_SCITOKENS_FILE=/nonexistent"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, failed(client.Change(t.Context(), c.id, Remove{Where: "true"})))
			env, err := os.ReadFile(log)
			require.NoError(t, err)
			var shown []string
			for line := range strings.Lines(string(env)) {
				if strings.HasPrefix(line, "KRB5CCNAME=") || strings.Contains(line, "_SEC_") ||
					strings.Contains(line, "_SCITOKENS_") {
					shown = append(shown, strings.TrimSpace(line))
				}
			}
			require.ElementsMatch(t, c.want, shown)
		})
	}
}

// A collector that does not accept a token says nothing to the tools, as if it were down.
func TestATokenThatIsNotTakenIsToldFromAScheddThatIsAway(t *testing.T) {
	const silent = `echo "Error: Couldn't contact the condor_collector on pool.test" >&2; exit 1`
	const refused = `printf '#AUTHENTICATE:1003:Failed to authenticate with any method\n# READ command to collector is FAILED\n'; exit 1`
	const asked = `[ "$*" = "-type COLLECTOR -pool pool.test -long READ" ] || exit 99; `
	for name, c := range map[string]struct {
		queue, ping string
		id          Identity
		kind        condor.Kind
		words       string
	}{
		"the collector refuses it":  {silent, asked + refused, Identity{Tokens: "/t"}, condor.Credentials, "iss has to be the pool's TRUST_DOMAIN"},
		"the collector denies it":   {silent, asked + `echo '#SECMAN:2010:Received "DENIED" from server for user a@b using method SCITOKENS.'; exit 1`, Identity{Tokens: "/t"}, condor.NotAuthorised, "DENIED"},
		"the collector takes it":    {silent, asked + "exit 0", Identity{Tokens: "/t"}, condor.Unreachable, "Couldn't contact"},
		"the collector is away":     {silent, asked + `echo "ERROR: failed to make connection to <pool.test>" >&2; exit 1`, Identity{Tokens: "/t"}, condor.Unreachable, "Couldn't contact"},
		"the schedd refuses it":     {`echo AUTHENTICATE:1004:Failed >&2; exit 1`, "exit 99", Identity{Tokens: "/t"}, condor.Credentials, "AUTHENTICATE:1004"},
		"the schedd says something": {`echo something >&2; exit 1`, "exit 99", Identity{Tokens: "/t"}, condor.Unknown, "condor_q: something"},
		"there is none":             {silent, "exit 99", Identity{CCache: "/cc"}, condor.Unreachable, "Couldn't contact"},
	} {
		t.Run(name, func(t *testing.T) {
			client := tools(t, long, map[string]string{"condor_q": c.queue, "condor_ping": c.ping})
			err := client.Query(t.Context(), c.id, Query{Where: "true"}, func(condor.Job) error { return nil })
			require.Equal(t, c.kind, condor.KindOf(err), "%v", err)
			require.ErrorContains(t, err, c.words)
		})
	}
}

// HTCondor's tools show only in their debugging output why a SciToken did not help.
func TestWhyASciTokenDidNotHelpIsTold(t *testing.T) {
	const refused = `echo AUTHENTICATE:1004:Failed >&2; exit 1`
	const shows = `echo "11/22/26 15:00:00 %s" >&2; echo "#AUTHENTICATE:1003:Failed to authenticate with any method"; exit 1`
	for name, c := range map[string]struct{ debugged, words string }{
		"the token":           {"SSL Auth: Server has rejected our token!", "the collector does not accept this token, with its claims: "},
		"the authority":       {"SSL: library failure: error:0A000086:SSL routines::certificate verify failed", "AUTH_SSL_CLIENT_CAFILE"},
		"the host's name":     {"SSL Auth: Error on check of peer certificate", "for another host name"},
		"an address":          {"No SSL host name specified.\n11/22/26 15:00:00 SSL Auth: Error on check of peer certificate", "named by an address"},
		"the library":         {"Failed to open SciTokens library: libSciTokens.so.0: cannot open shared object file", "libSciTokens.so.0 is missing"},
		"the pool's methods":  {"HANDSHAKE: server replied (method = 0)", "it must accept SCITOKENS"},
		"nothing that is new": {"something", "it must accept SCITOKENS"},
	} {
		t.Run(name, func(t *testing.T) {
			client := tools(
				t,
				long,
				map[string]string{"condor_q": refused, "condor_ping": fmt.Sprintf(shows, c.debugged)},
			)
			err := client.Query(
				t.Context(),
				Identity{SciToken: "/t", Claims: "its claims"},
				Query{Where: "true"},
				func(condor.Job) error { return nil },
			)
			require.Equal(t, condor.Credentials, condor.KindOf(err), "%v", err)
			require.ErrorContains(t, err, c.words)
			require.ErrorContains(t, err, "AUTHENTICATE:1004:Failed")
		})
	}
	t.Run("the schedd alone", func(t *testing.T) {
		client := tools(
			t,
			long,
			map[string]string{
				"condor_q":    refused,
				"condor_ping": `[ "$2 $3" = "-type COLLECTOR" ] || { echo "Server has rejected our token!" >&2; exit 1; }`,
			},
		)
		err := client.Query(
			t.Context(),
			Identity{SciToken: "/t", Claims: "its claims"},
			Query{Where: "true"},
			func(condor.Job) error { return nil },
		)
		require.ErrorContains(t, err, "the schedd does not accept this token")
	})
}

const twoJobs = `[
{
  "ClusterId": 9,
  "ProcId": 0,
  "JobStatus": 4,
  "LastJobStatus": 2,
  "ExitBySignal": false,
  "ExitCode": 3,
  "HTCJobUID": "u",
  "HTCJobAttempt": 2,
  "HoldReason": null,
  "StageInFinish": 1795220850
}
,
{
  "ClusterId": 9,
  "ProcId": 1,
  "jobstatus": 5,
  "HoldReasonCode": 16,
  "HoldReason": "Spooling input data files"
}
]
`

func TestACommandIsKilledWithItsChildrenAtItsDeadline(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	// On a busy machine a short deadline is over before the script has a child.
	for deadline := 300 * time.Millisecond; ; deadline *= 2 {
		require.NoError(t, os.WriteFile(pids, nil, 0o600))
		client := tools(t, deadline, map[string]string{"condor_q": fmt.Sprintf(hang, pids)})
		err := client.Query(t.Context(), Identity{}, Query{}, func(condor.Job) error { return nil })
		require.Equal(t, condor.Timeout, condor.KindOf(err))
		require.ErrorContains(t, err, fmt.Sprintf("condor_q: no answer within %s; it was killed", deadline))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if written, err := os.ReadFile(pids); err != nil || bytes.Count(written, []byte("\n")) == 2 {
			require.NoError(t, err)
			break
		}
	}
	require.Eventually(t, func() bool { return allGone(t, pids, 2) }, time.Minute, 5*time.Millisecond)
}

func TestACommandIsKilledWhenItsCallerGivesUp(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	client := tools(t, long, map[string]string{"condor_submit": fmt.Sprintf(hang, pids)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := client.Submit(ctx, Identity{}, staged(t, 1))
		done <- err
	}()
	require.Eventually(
		t,
		func() bool { b, _ := os.ReadFile(pids); return strings.Count(string(b), "\n") == 2 },
		5*time.Second,
		5*time.Millisecond,
	)
	cancel()
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, condor.Unknown, condor.KindOf(err))
	require.Eventually(t, func() bool { return allGone(t, pids, 2) }, 5*time.Second, 5*time.Millisecond)
}

func TestAChildThatLeftItsGroupDoesNotOutlastTheDeadline(t *testing.T) {
	client := tools(t, 300*time.Millisecond, map[string]string{"condor_q": `setsid sleep 30 & printf '[\n'`})
	start := time.Now()
	err := client.Query(t.Context(), Identity{}, Query{}, func(condor.Job) error { return nil })
	require.Error(t, err)
	require.Less(t, time.Since(start), 15*time.Second)
}

// allGone reports whether the n processes whose ids are in the file are dead.
func allGone(t *testing.T, file string, n int) bool {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	pids := strings.Fields(string(b))
	if len(pids) < n {
		return false
	}
	for _, p := range pids {
		pid, err := strconv.Atoi(p)
		require.NoError(t, err)
		if stat, err := os.ReadFile("/proc/" + p + "/stat"); err == nil && !bytes.Contains(stat, []byte(") Z ")) &&
			syscall.Kill(pid, 0) == nil {
			return false
		}
	}
	return true
}

func TestWhatAToolSaysIsBounded(t *testing.T) {
	client := tools(t, long, map[string]string{
		"condor_submit": `i=0; while [ $i -lt 20000 ]; do echo "line $i of too many"; i=$((i+1)); done >&2; printf 'the \033[31mend\007\n' >&2; exit 1`,
		"condor_rm":     `yes`,
	})
	_, err := client.Submit(t.Context(), Identity{}, staged(t, 1))
	require.ErrorContains(t, err, "the ␛[31mend␇")
	require.NotContains(t, err.Error(), "\x1b")
	require.Less(t, len(err.Error()), 3000)
	require.ErrorContains(
		t,
		failed(client.Change(t.Context(), Identity{}, Remove{Where: "x"})),
		"an answer of more than",
	)
}

func TestAToolThatIsNotThere(t *testing.T) {
	client := New(Options{BinDir: t.TempDir(), Schedd: "s"})
	err := failed(client.Change(t.Context(), Identity{}, Remove{Where: "x"}))
	require.ErrorContains(t, err, "condor_rm: cannot be started")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, condor.Unknown, condor.KindOf(err))
}

func TestScheddName(t *testing.T) {
	name := func(o Options, script string) (string, error) {
		c := tools(t, long, map[string]string{"condor_config_val": script})
		c.o.Schedd = o.Schedd
		return c.ScheddName(t.Context(), Identity{})
	}
	got, err := name(Options{Schedd: "given"}, "exit 1")
	require.NoError(t, err)
	require.Equal(t, "given", got)
	got, err = name(Options{}, `echo "host.of.$1"`)
	require.NoError(t, err)
	require.Equal(t, "host.of.SCHEDD_HOST", got)
	got, err = name(Options{}, `case $1 in FULL_HOSTNAME) echo here ;; *) echo "Not defined: $1" >&2; exit 1 ;; esac`)
	require.NoError(t, err)
	require.Equal(t, "here", got)
	got, err = name(
		Options{},
		`case $1 in FULL_HOSTNAME) echo here ;; SCHEDD_NAME) echo mine ;; *) echo "Not defined: $1" >&2; exit 1 ;; esac`,
	)
	require.NoError(t, err)
	require.Equal(t, "mine@here", got)
	_, err = name(Options{}, `echo "Not defined: $1" >&2; exit 1`)
	require.ErrorContains(t, err, "neither SCHEDD_HOST nor FULL_HOSTNAME is set")
	_, err = name(Options{}, `echo "ERROR: cannot read the configuration" >&2; exit 1`)
	require.ErrorContains(t, err, "cannot read the configuration")
}

func TestNoSecretReachesAToolOrAnError(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	client := tools(
		t,
		long,
		map[string]string{
			"condor_submit": `env >` + log + `; echo "$@" >>` + log + `; cat job.sub job.sh >>` + log + `; echo no >&2; exit 1`,
		},
	)
	_, err := client.Submit(t.Context(), Identity{CCache: "/c"}, staged(t, 1))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "tok-0123456789")
	seen, rerr := os.ReadFile(log)
	require.NoError(t, rerr)
	require.NotEmpty(t, seen)
	require.NotContains(t, string(seen), "tok-0123456789")
}

// hostile answers about job 1.0, but about jobs 2.0 and 2.1 only with attributes that nobody can make long; a query for
// small ads omits 2.1.
const hostile = `case "$*" in
*"ProcId,JobStatus,Owner"*) echo '[{"ClusterId":1,"ProcId":0,"JobStatus":2},{"ClusterId":2,"ProcId":0,"JobStatus":2,"HTCJobUID":"u"},{"ClusterId":2,"ProcId":1,"JobStatus":5,"HTCJobUID":"u"}]' ;;
*"ClusterId >= 2 && ClusterId <= 2 && ProcId >= 0 && ProcId <= 0"*) echo "Failed to fetch ads" >&2; exit 1 ;;
*"ClusterId >= 2"*unparse*) echo '[{"ClusterId":2,"ProcId":0,"JobStatus":2}]' ;;
*"ClusterId >= 1 && ClusterId <= 1 "*unparse*) echo '[{"ClusterId":1,"ProcId":0,"JobStatus":2}]' ;;
*) printf '[{"ClusterId":1,"ProcId":0,"JobStatus":2}\n'; echo "Failed to fetch ads" >&2; exit 1 ;;
esac`

// failed returns the error of a call whose other result does not matter.
func failed[T any](_ T, err error) error { return err }
