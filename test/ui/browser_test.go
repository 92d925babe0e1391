package ui

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/programtest"
	"htc.cern.ch/htcd/test/lab/cache"
	"htc.cern.ch/htcd/test/trial"
)

// enter runs Chromium in its root: with mounts and processes of its own, and the network of the host, where the page
// is.
const enter = `mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/tmp" &&
exec chroot "$0" chromium "$@"`

// browser starts a headless Chromium, which ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	parts, err := cache.Default(t.Logf)
	require.NoError(t, err)
	root, err := parts.Browser(t.Context())
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "chromium")
	text := "#!/bin/sh\nexec unshare --mount --pid --fork --kill-child /bin/sh -c '" + enter + "' '" + root + "' \"$@\"\n"
	programtest.Write(t, program, text)
	options := append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.NoSandbox,
		chromedp.UserDataDir(
			"/tmp/profile",
		),
		chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-gpu", true),
	)
	allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

// served runs htcd ui with a kubeconfig, and returns the address that it prints.
func served(t *testing.T, b *trial.Bench, args ...string) string {
	t.Helper()
	page := exec.Command(b.Lab.Bin("htcd"), append([]string{"ui", "--no-browser"}, args...)...)
	page.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	page.Stderr = os.Stderr
	out, err := page.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, page.Start())
	t.Cleanup(func() {
		require.NoError(t, page.Process.Signal(syscall.SIGINT))
		require.NoError(t, page.Wait(), "an interrupt is its end")
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(address)
}

// tab is the page in a browser.
type tab struct {
	t *testing.T
	context.Context
}

// run returns what an action does.
func run[T any](p tab, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Context, trial.Patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	require.NoError(p.t, err)
	return value
}

// eval returns what an expression is in the page.
func eval[T any](p tab, expression string, options ...chromedp.EvaluateOption) (value T) {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](expression, options...))
}

// until waits for an expression to be true in a page that is complete: before its style sheet is there, all has other
// sizes.
func (p tab) until(expression string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		ctx, cancel := context.WithTimeout(p.Context, trial.Patience)
		defer cancel()
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState == "complete" && !!(`+expression+")"))
		return err == nil && is // between two pages nothing can be evaluated
	}, trial.Patience, 20*time.Millisecond, expression)
}

// text is that of the page's main part.
func (p tab) text() string { return eval[string](p, `document.getElementById("main").innerText`) }

func (p tab) size(width, height int64) {
	run(p, chromedp.EmulateViewport(width, height))
}

// picture keeps what is seen, for the docs where HTCD_PICTURES names their directory.
func (p tab) picture(name string) {
	png := run(p, chromedp.CaptureScreenshot())
	dir := os.Getenv("HTCD_PICTURES")
	if dir == "" {
		dir = p.t.ArtifactDir()
	}
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}
