package abi

// inGuest tells that this is a guest's side of the contract.
const inGuest = true
