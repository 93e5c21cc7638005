package report

// LostEvent is an acknowledged event, whose receipt the store no longer has.
type LostEvent struct {
	At      string `json:"at"`
	RunID   string `json:"run_id"`
	Persona string `json:"persona_id"`
	EventID string `json:"event_id"`
}
