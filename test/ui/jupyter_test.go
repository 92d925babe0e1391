//go:build jupyter

package ui

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// notebook starts Debian's Jupyter with one notebook.
const notebook = `cat >sum.ipynb <<'END'
{"cells": [{"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": ["print(6 * 7)"]}],
 "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}, "nbformat": 4, "nbformat_minor": 4}
END
exec jupyter notebook --no-browser --ip=127.0.0.1 --port=%d --port-retries=0 --NotebookApp.token=%s
`

// TestANotebookInAJobIsUsedInABrowser does what docs/python.md says: the browser is on the user's side of htcd
// port-forward, and the page talks to the kernel in the job by a websocket.
func TestANotebookInAJobIsUsedInABrowser(t *testing.T) {
	b := trial.New(t)
	image := b.Image("jupyter")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	b.Create(
		"notebook",
		fmt.Sprintf(notebook, port, b.Namespace),
		func(job *v1alpha1.HTCJob) { job.Spec.Script.Image = image },
	)

	forward := exec.Command(b.Lab.Bin("htcd"), "port-forward", "notebook", fmt.Sprint("0:", port), "-n", b.Namespace)
	forward.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	forward.Stderr = os.Stderr
	said, err := forward.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, forward.Start())
	t.Cleanup(func() {
		_ = forward.Process.Kill()
		_ = forward.Wait()
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	url, _, _ := strings.Cut(line, " ")

	p := tab{t, browser(t)}
	b.Eventually(func() bool { // the job must begin, and its server
		_, err := chromedp.Run(p.Context, chromedp.Navigate(url+"/notebooks/sum.ipynb?token="+b.Namespace))
		return err == nil && eval[bool](p, `!!document.getElementById("notebook")`)
	}, func() string { return "the notebook is not reached: " + b.Kubectl("describe", "htcjob", "notebook") })
	p.until(`Jupyter.notebook && Jupyter.notebook.kernel && Jupyter.notebook.kernel.is_connected()`)
	eval[bool](p, `Jupyter.notebook.execute_all_cells(), true`)
	p.until(
		`document.querySelector(".output_stdout pre") && document.querySelector(".output_stdout pre").innerText.trim() == "42"`,
	)
	b.Kubectl("delete", "htcjob", "notebook")
}
