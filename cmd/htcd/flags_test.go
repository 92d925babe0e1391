package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/daemon"
	"htc.cern.ch/htcd/internal/serve/control"
)

// wrong has values of each flag that are refused; those of one command stand under its name and the flag's.
var wrong = map[string][]string{
	"address":           {"192.0.2.1", "localhost", ""},
	"allow":             {"htcd", "=robot", "htcd=", "htcd=a b", "a=b=c"},
	"allow-htcopts":     {"batch_project,Executable", "a b", "+ClusterId", "+"},
	"allow-images":      {"centos", "docker://a b"},
	"allow-pools":       {"a/b/c", "a b"},
	"allow-registries":  {"https://a/b", "user:password@host", "a b"},
	"allow-url-schemes": {"file", "https,FILE", "a:"},
	"append":            {"", "a\nb"},
	"attempt":           {"-1", "1.5", "99999999999", "newest"},
	"attributes":        {"Owner", "a b", "RequestMemory", "HTCJobUID"},
	"binds":             {"/a b", "cvmfs", "/a:/b", "/a/../b", "/cvmfs,/a'b", "/a\nb"},
	"ca-file":           {"a\nb"},
	"callback-ca":       {"ca.pem", "/a\x00b"},
	"callback-deadline": {"0s", "-1m", "999ms", "9999h", "60"},
	"callback-url": {
		"htcd.test",
		"ftp://htcd.test/cloudevents",
		"http://user:hunter2@htcd.test/cloudevents",
		"http://htcd.test/events",
		"http://htcd.test/cloudevents?a",
		"http://htcd.test/cloudevents#a",
		"http://htcd.test:99999/cloudevents",
		"http:///cloudevents",
		"http://a b/cloudevents",
		"http://htcd.test:/cloudevents",
	},
	"command-timeout":          {"0", "-1s", "2h"},
	"client-ca":                {"ca.pem"},
	"condor-bin-dir":           {"bin"},
	"condor-config":            {"condor_config"},
	"context":                  {"a\nb"},
	"control-socket":           {"control.sock", "/" + strings.Repeat("a", control.MaxPath)},
	"credential-dir":           {"secret"},
	"data":                     {"data", "", "/a\nb"},
	"deadline":                 {"0s", "-1s", "100h"},
	"ephemeral-registries":     {"a/b", "a b"},
	"every":                    {"999ms", "-1s", "9999h"},
	"exit":                     {"256", "-2"},
	"exit-code":                {"256", "-1"},
	"feed":                     {"https://a", "a=http://b", "a=https://b/c", "a b=https://c", "=https://c"},
	"feed-ca":                  {"ca.pem"},
	"feed-cert":                {"a.pem"},
	"feed-key":                 {"a.key"},
	"fetchers":                 {"0", "-1", "101"},
	"file":                     {"a\nb"},
	"filename":                 {"a\nb"},
	"full-crosscheck":          {"-1s", "9999h"},
	"health-listen":            {"localhost", ":99999", ":http", ""},
	"history":                  {"history"},
	"identity":                 {"a b", "a\nb", strings.Repeat("a", 254)},
	"image":                    {"a\nb"},
	"image-registry":           {"https://a", "a b", "a:b", "a/B", "u:p@host", "host:99999999/x:y"},
	"index":                    {"-1", "one"},
	"input":                    {"", "a\nb"},
	"jobid":                    {"7", "7.x", "-1.0"},
	"keep":                     {"-1", "1000000"},
	"factory-above":            {"-1", "99999999999"},
	"history-kept":             {"-1s", "1", "100000000h", "long"},
	"keep-free":                {"-1Gi", "1", "2Pi", "many"},
	"kinit-secret":             {"A b", "a/b", "", "Secret_1"},
	"kinit-secret-namespace":   {"a.b", "A"},
	"krb5-config":              {"krb5.conf"},
	"kubeconfig":               {"a\nb"},
	"lease-name":               {"A b", "", "a/b"},
	"ledger":                   {"htcjobs.db"},
	"listen":                   {":99999", "localhost", "", "a b:1", ":-1", ":01", "http://localhost:80"},
	"limit":                    {"-1", "x"},
	"log-format":               {"yaml", ""},
	"log-level":                {"loud", "", "5"},
	"logs-pod-image":           {"a b", "http://a/b", "A:B:C"},
	"max-input":                {"-1", "3000", "1E"},
	"max-open-per-namespace":   {"-1", "99999999999"},
	"max-output":               {"-1", "3000", "4GB"},
	"max-queue":                {"-1", "99999999999"},
	"name":                     {"A b", "a/b"},
	"namespace":                {"A_b", "a.b", strings.Repeat("a", 64)},
	"node":                     {"-2", "x"},
	"htcd exec --node":         {"a b", "a/b"},
	"htcd logs --node":         {"a b", "a/b"},
	"htcd port-forward --node": {"a b", "a/b"},
	"output":                   {"yaml", ""},
	"htcd convert --output":    {"a\nb"},
	"output-listen":            {"localhost", ":99999"},
	"pod-name":                 {"A b"},
	"pod-namespace":            {"A b"},
	"pod-uid":                  {"a b", strings.Repeat("a", 64)},
	"collector":                {"a b", "a:b", "a:0", "http://a", "-debug"},
	"pool":                     {"a b", "a:b", "a:0", "http://a", "-debug"},
	"pool-file":                {"a\nb"},
	"pool-secrets":             {"A b", "a,B"},
	"port":                     {"-1", "65536"},
	"pprof-listen":             {"6060", ":99999"},
	"htcd cancel --proc":       {"a", "9-7", "-1"},
	"htcd rerun --proc":        {"a", "9-7", "-1"},
	"proxy":                    {"A b", "a/b/c", "a/"},
	"proc":                     {"-2", "x", "99999999999"},
	"realms":                   {"A.ORG,robot@B.ORG", "a b", "A/B"},
	"reconcile-schedule": {
		"often",
		"@every -1s",
		"@every 0s",
		"@every 999ms",
		"@every 1",
		"* * * *",
		"0 0 30 2 *",
		"TZ=UTC",
		"CRON_TZ=Nowhere/At_All * * * * *",
		"",
	},
	"refresh":          {"0s", "-1s", "9999h"},
	"results-file":     {"a\nb"},
	"resync":           {"1ms", "0", "-10s", "9999h", "ten"},
	"retcode":          {"256", "-1"},
	"schedd":           {"-name", "a b", "a\"b", "a;b"},
	"schedd-command":   {"myschedd show", "/a\nb"},
	"schedd-commands":  {"1", "-1", "1001"},
	"schedd-rate":      {"0", "-1", "NaN", "Inf", "1e7", "0.5"},
	"selector":         {"a b", "=", "a in"},
	"sequence":         {"-2", "x"},
	"ship-sender":      {"htcd"},
	"shutdown-timeout": {"0s", "-1s", "2h"},
	"since":            {"-1h", "yesterday"},
	"spool":            {"spool"},
	"state":            {"good", "Succeeded"},
	"stderr-file":      {"a\nb"},
	"step":             {"a b", "a/b", strings.Repeat("a", 64)},
	"submitters":       {"0", "-1", "101"},
	"tail":             {"-2", "x"},
	"ticket-dir":       {"tickets", ""},
	"timeout":          {"-1s", "soon"},
	"tls-cert":         {"tls.crt"},
	"tls-key":          {"tls.key"},
	"token":            {"A b", "a/b/c", "a/"},
	"token-file":       {"a\nb"},
	"user":             {"a\nb"},
	"delete":           {"a\nb"},
	"traces": {
		"collector:4318",
		"http://collector:4318",
		"http://collector:4318/v1/traces/",
		"grpc://collector:4317/v1/traces",
		"http://user:hunter2@collector:4318/v1/traces",
		"http://collector:4318/v1/traces?a",
		"http://collector:99999/v1/traces",
	},
	"upload-files": {"-1", "many"},
	"upload-quota": {"-1Gi", "1", "2Pi"},
	"url":          {"host", "ftp://host/x", "http://user:hunter2@host/", "http://host/?a"},
	"workers":      {"0", "-1", "1001", "1000000000", "99999999999999999999", "four", ""},
	"workflow":     {"A b"},
}

// everyFlag calls f for each flag of each command.
func everyFlag(c *cobra.Command, f func(c *cobra.Command, flag *pflag.Flag)) {
	c.Flags().VisitAll(func(flag *pflag.Flag) { f(c, flag) })
	c.PersistentFlags().VisitAll(func(flag *pflag.Flag) { f(c, flag) })
	for _, below := range c.Commands() {
		everyFlag(below, f)
	}
}

func TestEveryFlagOfEveryCommandRefusesWhatItCannotMean(t *testing.T) {
	used := map[string]bool{}
	everyFlag(rootCommand("htcd", nil), func(c *cobra.Command, flag *pflag.Flag) {
		require.NotEmpty(
			t,
			setting.Allowed(flag),
			"%s --%s: define it by the package setting",
			c.CommandPath(),
			flag.Name,
		)
		key := c.CommandPath() + " --" + flag.Name
		values, of := wrong[key]
		if !of {
			key = flag.Name
			values = wrong[key]
		}
		used[key] = true
		if flag.Value.Type() == "bool" {
			values = []string{"perhaps", "2", ""}
		}
		require.NotEmpty(t, values, "%s: add a wrong value to the table of this test", c.CommandPath()+" --"+flag.Name)
		for _, value := range values {
			code, said := said(t, append(strings.Fields(c.CommandPath())[1:], "--"+flag.Name+"="+value), nil)
			require.Equal(t, exitUsage, code, "%s --%s=%s: %s", c.CommandPath(), flag.Name, value, said)
			require.Contains(t, said, "--"+flag.Name, "%s: %q", c.CommandPath(), value)
			require.NotContains(t, said, "hunter2")
		}
	})
	for key := range wrong {
		require.True(t, used[key], "no command has the flag %s", key)
	}
}

func TestAWrongVariableIsRefusedAsTheFlagIs(t *testing.T) {
	var o daemon.Options
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags(&o, f)
	f.VisitAll(func(flag *pflag.Flag) {
		values := wrong[flag.Name]
		if flag.Value.Type() == "bool" {
			values = []string{"perhaps"}
		}
		for _, value := range values {
			if value == "" || strings.Contains(value, "\x00") { // not given, and no environment can hold it
				continue
			}
			name := setting.Variable(flag.Name)
			code, said := said(t, []string{"run"}, []string{name + "=" + value})
			require.Equal(t, exitUsage, code, "%s=%s: %s", name, value, said)
			require.True(
				t,
				strings.Contains(said, name) || strings.Contains(said, "--"+flag.Name),
				"%s=%s: %s",
				name,
				value,
				said,
			)
		}
	})
}

func TestAMistakeNamesTheFlagItsValueAndWhatIsAllowed(t *testing.T) {
	for arg, says := range map[string]string{
		"--workers=1000000000": "--workers 1000000000: want a whole number from 1 to 1000",
		"--resync=1ms":         "--resync 1ms: want a time from 1s to 8760h",
		"--listen=:99999":      `--listen ":99999": want host:port or :port, with a port from 0 to 65535`,
		"--max-output=4GB":     "--max-output 4GB: want 0 to 1Pi in whole Mi, such as 500Mi or 2Gi",
		"--kueue=perhaps":      "--kueue perhaps: want true or false",
		"--callback-url=http://me:hunter2@htcd.test/": `--callback-url "http://me:xxxxx@htcd.test/": want http://host:port/cloudevents or https://host:port/cloudevents, without user, password, query and fragment`,
		"--reconcile-schedule=@every -1s":             `--reconcile-schedule "@every -1s": want cron's five fields, such as "* * * * *", or @every and at least 1s, such as "@every 30s", with a next time`,
		"--allow-htcopts=Executable":                  "--allow-htcopts: Executable is htcd's own and cannot be allowed",
	} {
		_, said := said(t, []string{"run", arg}, nil)
		require.Equal(t, "htcd: "+says+"\n", said)
	}
	_, said := said(t, []string{"run"}, []string{"HTCD_WORKERS=many", "HTCD_LISTEN=here"})
	require.Equal(t, "htcd: run: HTCD_LISTEN here: want host:port or :port, with a port from 0 to 65535\n"+
		"HTCD_WORKERS many: want a whole number from 1 to 1000\n", said, "all that are wrong")
}

func TestRightValuesOfFlagsAreTaken(t *testing.T) {
	var o daemon.Options
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags(&o, f)
	for name, values := range map[string][]string{
		"callback-url":       {"http://htcd.test/cloudevents", "https://[2001:db8::1]:443/cloudevents", "https://htcd.test/behind/a/proxy/cloudevents"},
		"image-registry":     {"registry.example.org", "registry.example.org:5000/group", "[2001:db8::1]:5000", ""},
		"logs-pod-image":     {"htcd", "htcd:dev", "registry.example.org:5000/group/htcd:1.0", "htcd@sha256:" + strings.Repeat("a", 64)},
		"listen":             {":0", "127.0.0.1:8088", "[::1]:8088", "localhost:8088"},
		"collector":          {"cm.example.org", "cm.example.org:9618", "192.0.2.1:9618", "[2001:db8::1]:9618", "2001:db8::1", ""},
		"schedd":             {"bigbird10.cern.ch", "name@host", ""},
		"realms":             {"A.ORG,B.ORG", ""},
		"reconcile-schedule": {"@every 1s", "@hourly", "*/5 * * * *", "TZ=UTC 0 6 * * *"},
		"identity":           {"host_0e0c1e12-6a3c-4c63-8f3c-1b1e4a1f2b3c_1", ""},
		"max-output":         {"0", "1024Mi", "1Pi", "1048576"},
		"full-crosscheck":    {"0", "24h"},
		"binds":              {"", "/cvmfs,/eos/user"},
		"schedd-command":     {"/usr/bin/myschedd show -j"},
	} {
		for _, value := range values {
			require.NoError(t, f.Set(name, value), "--%s=%s", name, value)
		}
	}
}

// said runs a command and returns its exit code and standard error.
func said(t *testing.T, args, environ []string) (code int, text string) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = stderr }()
	done := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		done <- string(all)
	}()
	code = run("htcd", args, environ)
	require.NoError(t, w.Close())
	return code, <-done
}
