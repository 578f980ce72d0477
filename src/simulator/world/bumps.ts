/** What the service's documentation leaves open: whether these move an issue's `updated_at`. */
export interface UncertainBumps {
  readonly reopen: boolean;
  readonly titleEdit: boolean;
  readonly lock: boolean;
  readonly pin: boolean;
  readonly commentEdit: boolean;
  readonly commentDelete: boolean;
  readonly labelDelete: boolean;
  readonly typeChange: boolean;
}

// Where the service's behaviour is unknown, the simulator takes the answer that is harder for a mirror.
export const HARD_BUMPS: UncertainBumps = {
  reopen: true,
  titleEdit: true,
  lock: false,
  pin: false,
  commentEdit: false,
  commentDelete: false,
  labelDelete: false,
  typeChange: false,
};
