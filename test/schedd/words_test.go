package schedd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestKindsOfHTCondorsOwnWords(t *testing.T) {
	t.Parallel()
	none := func(condor.Job) error { return nil }
	for name, c := range map[string]struct {
		call func(*bench) error
		kind condor.Kind
	}{
		"a bad expression that a site lets through": {func(b *bench) error {
			b.d.Allow, b.d.Options = []string{"periodic_vacate"}, "periodic_vacate = ((("
			_, err := b.send()
			return err
		}, condor.Refused},
		"words of an outage that a user wrote": {func(b *bench) error {
			b.d.Options = `retry_until = int(substr("99999999999, Connection refused", 0, 11))` + "\n"
			_, err := b.send()
			return err
		}, condor.Refused},
		"a schedd nobody knows": {func(b *bench) error {
			b.elsewhere(schedd.Options{Schedd: "nowhere"})
			_, err := b.send()
			return err
		}, condor.Unreachable},
		"a schedd nobody knows, asked": {func(b *bench) error {
			b.elsewhere(schedd.Options{Schedd: "nowhere"})
			return b.Query(b.t.Context(), b.id, schedd.Query{}, none)
		}, condor.Unreachable},
		"a schedd nobody knows, asked for its history": {func(b *bench) error {
			b.elsewhere(schedd.Options{Schedd: "nowhere"})
			return b.Query(b.t.Context(), b.id, schedd.Query{Left: &schedd.HistoryBounds{}}, none)
		}, condor.Unreachable},
		"a schedd nobody knows, told to remove": {func(b *bench) error {
			b.elsewhere(schedd.Options{Schedd: "nowhere"})
			return scheddtest.Err(b.Change(b.t.Context(), b.id, schedd.Remove{Where: "false"}))
		}, condor.Unreachable},
		"no collector": {func(b *bench) error {
			b.elsewhere(schedd.Options{Pool: "127.0.0.1:1"})
			return b.Query(b.t.Context(), b.id, schedd.Query{}, none)
		}, condor.Unreachable},
		"no ticket, where the collector wants one too": {func(b *bench) error {
			b.id = schedd.Identity{}
			_, err := b.send()
			return err
		}, condor.Unreachable},
		"a constraint that is none": {func(b *bench) error {
			return scheddtest.Err(b.Change(b.t.Context(), b.id, schedd.Remove{Where: "((("}))
		}, condor.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.call(newBench(t))
			var e *condor.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.kind, e.Kind, e.Error())
			require.NotEmpty(t, e.Stderr)
			require.NotContains(t, e.Error(), token)
		})
	}
	b := newBench(t)
	require.NoError(
		t,
		scheddtest.Err(
			b.Change(t.Context(), b.id, schedd.Remove{Where: b.d.Tag.Constraint(), Reason: "nothing there"}),
		),
	)
	require.NoError(t, scheddtest.Err(b.Ping(t.Context(), b.id, schedd.Reading)))
	b.elsewhere(schedd.Options{Schedd: "nowhere"})
	require.Equal(t, condor.Unreachable, condor.KindOf(scheddtest.Err(b.Ping(t.Context(), b.id, schedd.Reading))))
	b = newBench(t)
	name, err := b.ScheddName(t.Context(), b.id)
	require.NoError(t, err)
	require.NotEmpty(t, name)
}

// elsewhere points the bench at another schedd or pool.
func (b *bench) elsewhere(o schedd.Options) {
	o.CondorConfig, o.Krb5Config = b.options().CondorConfig, b.options().Krb5Config
	b.Client = schedd.New(o)
}

func goldens(t *testing.T, file string) []txtar.File {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("../../internal", file))
	require.NoError(t, err)
	return ar.Files
}

func TestEveryAcceptedOptionIsAcceptedByCondorSubmit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := goldens(t, "schedd/submit/testdata/htcopts.txtar")
	for i := 0; i < len(files); i += 2 {
		if strings.HasPrefix(string(files[i+1].Data), "! ") {
			continue
		}
		t.Run(files[i].Name, func(t *testing.T) {
			d := b.d
			d.Options, d.Allow = string(files[i].Data), []string{"batch_project", "+ProjectX"}
			dir := t.TempDir()
			require.NoError(t, stage(dir, d))
			ads, err := dryRun(t.Context(), dir)
			require.NoError(t, err)
			ad := ads[0]
			uid, _ := ad.Get("HTCJobUID").Str()
			require.Equal(t, d.Tag.UID, uid)
			for l := range strings.Lines(string(files[i+1].Data)) {
				if name, ok := strings.CutPrefix(strings.Fields(l)[0], "My."); ok {
					require.True(t, ad.Has(name), name)
				}
			}
		})
	}
}

func TestEveryExpressionMeansTheSameToCondorSubmit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "job.sh"), []byte("#!/bin/sh\n"), 0o755))
	meaning := func(x string) (string, error) {
		text := "executable = job.sh\nMy.X = " + x + "\nqueue\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "job.sub"), []byte(text), 0o644))
		ads, err := dryRun(t.Context(), dir)
		if err != nil {
			return "", err
		}
		return ads[0].Get("X").String(), nil
	}
	for _, f := range goldens(t, "classad/testdata/expr.txtar") {
		lines := strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n")
		for i := 0; i < len(lines); i += 2 {
			x, err := classad.ParseExpr(lines[i])
			if err != nil {
				continue
			}
			written, err := meaning(x.String())
			require.NoError(t, err, lines[i])
			// Every HTCondor reads what htcd writes; 25.14 does not read everything that users write, such as x ?: !y.
			if meant, err := meaning(lines[i]); err == nil {
				require.Equal(t, printed(meant), printed(written), lines[i])
			}
		}
	}
}

func TestQuotedTextComesBackAsItWas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, text := range []string{`say "hi"`, `back\slash`, `\"`, `\\` + `"`, `'`, "ä€😀", `a\" == "b`, `%s $HOME #`, `$`} {
		d := b.d
		d.BatchName = text
		dir := t.TempDir()
		require.NoError(t, stage(dir, d), text)
		ads, err := dryRun(t.Context(), dir)
		require.NoError(t, err)
		got, _ := ads[0].Get("JobBatchName").Str()
		require.Equal(t, text, got)
	}
}
