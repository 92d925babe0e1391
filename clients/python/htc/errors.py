"""What can go wrong."""


class Error(Exception):
    """Something that htcd, Kubernetes or this package refuses or cannot do."""


class JobError(Error):
    """A job that has failed. Its text ends with the end of the job's standard error."""

    def __init__(self, job: str, line: dict):
        self._made_of = job, line
        self.proc = line["proc"]
        self.jobid = line.get("jobid", "")
        self.exit_code = line.get("exitCode")
        self.signal = line.get("signal")
        self.reason = line.get("reason", "")
        self.stderr = line.get("stderr", "")
        what = f"job {self.proc} of {job}"
        if self.jobid:
            what += f" ({self.jobid} in HTCondor)"
        what += ": " + (line.get("message") or self.reason or "it has failed")
        super().__init__(what + ("\n" + self.stderr.rstrip() if self.stderr.strip() else ""))

    def __reduce__(self):
        return type(self), self._made_of  # it may be raised in another process than where it is caught
