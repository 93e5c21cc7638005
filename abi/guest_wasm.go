package abi

// inGuest reports which side of the contract was compiled: here the guest's.
const inGuest = true
