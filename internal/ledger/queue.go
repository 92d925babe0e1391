package ledger

import "time"

// Queue is one with which a schedd answered from some time on.
type Queue struct {
	Born  int64 // when it was set up, in Unix seconds by the schedd's clock
	Since time.Time
}

// mostQueues are kept of each schedd.
const mostQueues = 20

// Queues returns those of a schedd, in the order in which it answered with them.
func (tx *Tx) Queues(collector, schedd string) (all []Queue, err error) {
	defer wrap(&err, "queues of schedd %s", schedd)
	err = tx.query(func(row scanner) error {
		var q Queue
		var since int64
		err := row.Scan(&q.Born, &since)
		q.Since = fromMillis(since)
		all = append(all, q)
		return err
	}, `SELECT born, since FROM queues WHERE collector = ? AND schedd = ? ORDER BY since`, collector, schedd)
	return all, err
}

// AddQueue records that a schedd answers with another queue than before.
func (tx *Tx) AddQueue(collector, schedd string, q Queue) (err error) {
	defer wrap(&err, "record the queue of schedd %s", schedd)
	_, err = tx.exec(`INSERT INTO queues (collector, schedd, since, born) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET born = excluded.born`, collector, schedd, millis(q.Since), q.Born)
	if err != nil {
		return err
	}
	_, err = tx.exec(`DELETE FROM queues WHERE collector = ?1 AND schedd = ?2 AND since <= (
		SELECT since FROM queues WHERE collector = ?1 AND schedd = ?2 ORDER BY since DESC LIMIT 1 OFFSET ?3)`,
		collector, schedd, mostQueues)
	return err
}
