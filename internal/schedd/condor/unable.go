package condor

// WhyUnable are the exit codes of dagman.sh and factory.sh for which HTCondor holds their job, with the code as the
// subcode, since an administrator of the schedd has to do something.
var WhyUnable = map[int]string{
	120: "the schedd has no room for its files, or its host has no tar or flock",
	121: "the schedd's host has no condor_dagman",
	122: "the schedd takes no jobs that its own host sends as this account: SCHEDD.SEC_WRITE_AUTHENTICATION_METHODS needs FS, and ALLOW_WRITE the host",
	123: "the schedd has ALTERNATE_JOB_SPOOL, with which htcd cannot send an HTCJob with parallelism",
	124: "the schedd has refused a factory of jobs (--factory-above): its own log and the launcher's standard error say why",
}

// Unable returns why no DAG, or no factory, can run at the job's schedd, if the job is DAGMan's or a launcher and found
// so.
func (j Job) Unable() (why string, is bool) {
	if j.Status != Held || j.HoldReasonCode != holdCodeOnExit {
		return "", false
	}
	why, is = WhyUnable[j.HoldReasonSubCode]
	return why, is
}

// holdCodeOnExit is the code of a hold by a job's own policy.
const holdCodeOnExit = 3
