package model

// The update policies: when the model is asked to work off what was recorded.
const (
	PolicyWindow  = "window"
	PolicyTokens  = "tokens"
	PolicyEvent   = "every_event"
	PolicySession = "after_accumulation_session"
	PolicyManual  = "manual"
)
