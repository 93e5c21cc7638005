package model

// The update policies: when the model processes what was recorded.
const (
	PolicyWindow  = "window"
	PolicyTokens  = "tokens"
	PolicyEvent   = "every_event"
	PolicySession = "after_accumulation_session"
	PolicyManual  = "manual"
)
