// Confirm is the dialog that asks before a change. There is one, in the frame.
import { useEffect, useRef, useState } from "preact/hooks";

interface Question {
  title: string;
  text: string;
  yes: string;
  answer: (agreed: boolean) => void;
}

let open: (q: Question) => void = () => undefined;

// confirm resolves to whether the person agreed.
export const confirm = (title: string, text: string, yes: string) => new Promise<boolean>((answer) => {
  open({ title, text, yes, answer });
});

export function Confirm() {
  const [question, ask] = useState<Question | null>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  const no = useRef<HTMLButtonElement>(null);
  useEffect(() => { open = ask; }, []);
  useEffect(() => {
    if (!question) return;
    dialog.current?.showModal();
    no.current?.focus();
  }, [question]);
  const close = (agreed: boolean) => {
    dialog.current?.close();
    question?.answer(agreed);
    ask(null);
  };
  return (
    <dialog id="confirm" ref={dialog} aria-labelledby="confirm-title" onCancel={() => close(false)}>
      <h2 id="confirm-title">{question?.title}</h2>
      <p><bdi dir="auto">{question?.text}</bdi></p>
      <p class="buttons">
        <button id="confirm-no" type="button" ref={no} onClick={() => close(false)}>Leave it</button>
        <button id="confirm-yes" type="button" class="act" onClick={() => close(true)}>{question?.yes}</button>
      </p>
    </dialog>
  );
}
